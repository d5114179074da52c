#include "proxy/origin/store_writer.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "cache/charge.h"
#include "proxy/http/stored_head.h"
#include "proxy/origin/entry.h"
#include "proxy/origin/parts.h"

namespace encore::server {
namespace {

// Bodies whose length is not known are given room in the cache piece by piece.
constexpr std::uint64_t kReserveStepBytes = 256 * 1024;

}  // namespace

StoreWriter::StoreWriter(OriginServices& services, const RequestContext& request)
    : services_(services), request_(request) {}

StoreWriter::~StoreWriter() {
  ENCORE_CHECK(reserved_bytes_ == 0, "what was reserved is committed or given back");
}

void StoreWriter::allow(const Received& received, const SharedResponse& response) {
  ENCORE_CHECK(state_ == State::kNo, "one response is stored at a time");
  received_ = &received;
  response_ = &response;
  state_ = State::kPossible;
}

bool StoreWriter::begin(store::Body& body, std::uint64_t body_bytes) {
  ENCORE_CHECK(state_ == State::kPossible, "storing begins once, where it may");
  state_ = State::kUnderWay;
  body.set_use(store::BodyUse::kStored);
  if (grow(body_bytes)) return true;
  stop(&body);
  return false;
}

bool StoreWriter::grow(std::uint64_t body_bytes) {
  ENCORE_CHECK(state_ == State::kUnderWay, "room is taken for what is being stored");
  if (body_bytes > request_.runtime->max_object_bytes) return false;
  const cache::ObjectSizes sizes = {
      .key = request_.key.size() + response_->names.size() + response_->variant_key.size(),
      .meta = sizeof(ObjectMeta),
      .head = received_->head_bytes.size() + cache::kHeadGrowthBytes,
      .body = body_bytes};
  const std::uint64_t needed = cache::charge_for(sizes) + services_.kernel.charge_of_entry();
  if (needed <= reserved_bytes_) return true;
  std::uint64_t more = needed - reserved_bytes_;
  if (received_->framing.kind != http::BodyKind::kLength && body_bytes > kReserveStepBytes) {
    more = std::max(more, kReserveStepBytes);
  }
  const auto outcome = services_.kernel.reserve(cache_key(request_), more, services_.loop.now());
  if (outcome != cache::ReserveOutcome::kReserved) return false;
  reserved_bytes_ += more;
  return true;
}

void StoreWriter::give_back() {
  if (reserved_bytes_ == 0) return;
  services_.kernel.abort(cache_key(request_), std::exchange(reserved_bytes_, 0),
                         services_.loop.now());
}

bool StoreWriter::stop(store::Body* body) {
  const bool was_under_way = std::exchange(state_, State::kNo) == State::kUnderWay;
  if (!was_under_way) return false;
  services_.stats.store_aborts.add();
  give_back();
  if (body != nullptr) body->set_use(store::BodyUse::kTransfer);
  return true;
}

// Head, meta and, of a joined part, the body of the entry. False where there is nothing to store.
bool StoreWriter::make_entry(const store::ObjectRef& completes, ObjectMeta& meta, std::string& head,
                             store::BodyRef& body) {
  const Received& received = *received_;
  meta.http = response_->meta;
  complete_meta(services_, request_, received, meta.http);
  http::build_stored_head(received.head, received.directives, body->size(), received.arrival(),
                          request_.runtime->head_options, head, meta.http);
  std::string tags = tags_in(received.head.fields, request_.runtime->config.cache.tag_fields);
  if (received.completed && tags.empty()) tags = tags_of(*completes);
  if (received.head.status == 206 &&
      !join_parts(services_, request_, received,
                  [this](std::uint64_t bytes) { return grow(bytes); },
                  {.meta = meta, .head = head, .tags = tags, .body = body})) {
    return false;
  }
  place_content_type(head, meta);
  head += response_->trailers;
  meta.tag_bytes = static_cast<std::uint32_t>(tags.size());
  head += tags;
  meta.variant = response_->variant;
  meta.primary_bytes = static_cast<std::uint32_t>(request_.key.size());
  meta.names_bytes = static_cast<std::uint32_t>(response_->names.size());
  meta.plain = response_->trailers.empty() && meta.http.status != 206 ? 1 : 0;
  return true;
}

store::ObjectRef StoreWriter::make_object(const ObjectMeta& meta, std::string_view head,
                                          const store::BodyRef& body) {
  const std::string key = request_.key + response_->names + response_->variant_key;
  const store::ObjectParts parts = {
      .key = key, .meta = std::as_bytes(std::span(&meta, 1)), .head = head};
  const cache::ObjectSizes sizes = {
      .key = key.size(), .meta = sizeof(ObjectMeta), .head = head.size(), .body = body->size()};
  if (cache::is_inline(sizes)) {
    std::array<iovec, 16> content;
    auto cursor = body->open(0);
    if (!cursor) return {};
    const auto peeked = cursor->peek(content, body->size());
    if (peeked.bytes == body->size()) {
      auto small = services_.store.make_small(parts, std::span(content.data(), peeked.parts));
      return small ? std::move(*small) : store::ObjectRef();
    }
  }
  auto writer = services_.store.reserve({.key = key, .length = body->size(), .body = body});
  if (!writer) return {};
  auto object = (*writer)->commit(parts);
  return object ? std::move(*object) : store::ObjectRef();
}

StoreWriter::Result StoreWriter::commit(const store::BodyRef& body,
                                        const store::ObjectRef& completes) {
  ENCORE_CHECK(state_ == State::kUnderWay, "what is committed was begun");
  ENCORE_CHECK(!received_->completed || completes, "a completed part is still there");
  ObjectMeta meta;
  std::string head;
  store::BodyRef whole = body;
  store::ObjectRef object;
  if (make_entry(completes, meta, head, whole)) object = make_object(meta, head, whole);
  if (!object) {
    stop(body.get());
    return Result::kUnfit;
  }
  const cache::Stored entry{.variant = meta.variant,
                            .charge_bytes = object->charge(),
                            .fresh_until = meta.http.fresh_until,
                            .keep_until = keep_until(request_, *received_, meta.http),
                            .payload = object.payload()};
  state_ = State::kNo;
  const auto outcome = services_.kernel.commit(
      cache_key(request_), entry, std::exchange(reserved_bytes_, 0), services_.loop.now());
  if (outcome != cache::CommitOutcome::kStored && outcome != cache::CommitOutcome::kReplaced) {
    services_.stats.store_aborts.add();
    return Result::kRefused;
  }
  services_.stats.stored.add();
  services_.stats.stored_bytes.add(entry.charge_bytes);
  (void)object.detach();
  drop_if_overtaken(services_, request_, *received_, meta);
  return Result::kStored;
}

}  // namespace encore::server

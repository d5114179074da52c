#include "proxy/origin/store_writer.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/recycled.h"
#include "cache/charge.h"
#include "proxy/disk/record.h"
#include "proxy/http/stored_head.h"
#include "proxy/http/tags.h"
#include "proxy/origin/changes.h"
#include "proxy/origin/entry.h"
#include "proxy/origin/parts.h"
#include "proxy/transfer/saved_object.h"

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

void StoreWriter::allow(const ReceivedResponse& received, const SharedResponse& response) {
  ENCORE_CHECK(state_ == State::kNo, "one response is stored at a time");
  received_ = &received;
  response_ = &response;
  state_ = State::kPossible;
}

bool StoreWriter::begin(store::Body& body, std::uint64_t body_bytes) {
  ENCORE_CHECK(state_ == State::kPossible, "storing begins once, where it may");
  state_ = State::kUnderWay;
  tags_ = http::tags_in(received_->head.fields, request_.runtime->config.cache.tag_fields);
  body.set_use(store::BodyUse::kStored);
  if (grow(body, body_bytes)) return true;
  stop(&body);
  return false;
}

bool StoreWriter::grow(store::Body& body, std::uint64_t body_bytes) {
  ENCORE_CHECK(state_ == State::kUnderWay, "room is taken for what is being stored");
  if (body_bytes > received_->request_policy->max_object_bytes) return false;
  // It has left the memory: there is nothing more to reserve.
  if (on_disk_alone_) return fits_disks(body_bytes);
  if (reserve(body_bytes) || leave_memory(body, body_bytes)) return true;
  let_key_wait(body_bytes);
  return false;
}

// As it would be stored, with a body of this size.
cache::ObjectSizes StoreWriter::sizes(std::uint64_t body_bytes) const {
  return {.key = request_.key.size() + response_->names.size() + response_->variant_key.size(),
          .meta = sizeof(ObjectMeta),
          .head = received_->head_bytes.size() + cache::kHeadGrowthBytes + tags_.size(),
          .body = body_bytes};
}

// With a body of so many bytes in it.
std::uint64_t StoreWriter::record_bytes_with(std::uint64_t body_bytes) const {
  const cache::ObjectSizes object = sizes(body_bytes);
  return disk::record_bytes({.key_bytes = static_cast<std::uint32_t>(object.key),
                             .names_bytes = static_cast<std::uint32_t>(response_->names.size()),
                             .meta_bytes = static_cast<std::uint32_t>(kSavedMetaBytes),
                             .head_bytes = static_cast<std::uint32_t>(object.head),
                             .body_bytes = body_bytes});
}

// Segments of 4 MiB do not take quite as long a body as a record may have (docs/decisions/0426).
bool StoreWriter::fits_one_record(std::uint64_t body_bytes) const {
  if (body_bytes <= cache::kPartBytes / 2) return true;  // any segment that takes parts
  return body_bytes <= disk::kRecordBodyMax &&
         services_.disks->fit(record_bytes_with(body_bytes),
                              static_cast<std::uint32_t>(response_->names.size()));
}

// On disk alone: the body in parts, and a record of the head. Why a head may be too long as well:
// docs/decisions/0371.
bool StoreWriter::fits_disks(std::uint64_t body_bytes) const {
  return services_.disks->fit(record_bytes_with(0),
                              static_cast<std::uint32_t>(response_->names.size())) &&
         services_.disks->fit(record_bytes_of_part(std::min(body_bytes, cache::kPartBytes)), 0);
}

bool StoreWriter::reserve(std::uint64_t body_bytes) {
  // All of a body whose length is known was reserved before its first piece.
  if (reserved_bytes_ != 0 && body_bytes <= reserved_body_) return true;
  if (body_bytes > request_.runtime->max_memory_object_bytes) return false;
  const std::uint64_t needed =
      cache::charge_for(sizes(body_bytes)) + services_.kernel.charge_of_entry();
  if (needed <= reserved_bytes_) {
    reserved_body_ = body_bytes;
    return true;
  }
  std::uint64_t more = needed - reserved_bytes_;
  if (received_->framing.kind != http::BodyKind::kLength && body_bytes > kReserveStepBytes) {
    more = std::max(more, kReserveStepBytes);
  }
  const auto outcome = services_.kernel.reserve(cache_key(request_), more, services_.loop.now());
  if (outcome != cache::ReserveOutcome::kReserved) return false;
  reserved_bytes_ += more;
  reserved_body_ = body_bytes;
  return true;
}

// True for a part of a representation, or if its first bytes are those of a stored one.
bool StoreWriter::is_piece() const { return received_->head.status == 206 || received_->completed; }

// An object on probation is in memory alone, and the disks may have been full meanwhile.
bool StoreWriter::may_be_on_disk() const {
  return services_.disks != nullptr && response_->admitted != cache::AdmitReason::kWaits;
}

// A response that did not say its size has turned out too large for the memory: what is decided of
// such a one is asked for again.
void StoreWriter::let_key_wait(std::uint64_t body_bytes) {
  if (response_->admitted != cache::AdmitReason::kWaits || response_->length ||
      body_bytes <= request_.runtime->max_memory_object_bytes) {
    return;
  }
  services_.kernel.admit(cache_key(request_),
                         {.variant = response_->variant,
                          .size_bytes = body_bytes,
                          .disk_only = true,
                          .rule = response_->admission},
                         services_.loop.now());
}

void StoreWriter::make_parts() {
  http::StoredMeta meta = response_->meta;
  complete_meta(request_, *received_, meta);
  parts_.emplace(services_, request_, keep_until(request_, *received_, meta));
}

// It will be on disk alone, if it can be.
bool StoreWriter::leave_memory(store::Body& body, std::uint64_t body_bytes) {
  if (!may_be_on_disk() || is_piece() || parts_failed_ || !fits_disks(body_bytes)) {
    return false;
  }
  if (!parts_) {
    make_parts();
    if (!parts_->begin(body)) return false;
  }
  give_back();
  // Nothing keeps the whole body from here on: slow readers hold it back (docs/decisions/0150).
  on_disk_alone_ = true;
  body.set_use(store::BodyUse::kTransfer);
  return true;
}

bool StoreWriter::write(store::Body& body) {
  ENCORE_CHECK(state_ == State::kUnderWay, "what is being stored is written");
  if (!may_be_on_disk() || parts_failed_) return !on_disk_alone_;
  if (!parts_ && (is_piece() || fits_one_record(body.size()))) return true;
  if (!parts_) {
    make_parts();
    ENCORE_CHECK(parts_->begin(body), "what is stored in memory is kept whole");
  }
  if (parts_->write(body)) return true;
  parts_.reset();
  parts_failed_ = true;
  return !on_disk_alone_;
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
  parts_.reset();
  if (body != nullptr) body->set_use(store::BodyUse::kTransfer);
  return true;
}

// True if the head to store is what was forwarded of it to all: with the same length, no cookie and
// no entity tag for the one who asked alone.
bool StoreWriter::is_head_forwarded(std::uint64_t body_bytes) const {
  return !is_piece() && response_->length == body_bytes &&
         !received_->head.fields.has(http::FieldId::kSetCookie) &&
         response_->meta.etag_offset < response_->common_bytes;
}

// The stored head, and of a part the body and tags that come of it. False if the part does not fit.
bool StoreWriter::make_head(Made& made, std::string& tags) {
  const ReceivedResponse& received = *received_;
  ObjectMeta& meta = made.meta;
  std::string& head = made.head;
  meta.http = response_->meta;
  complete_meta(request_, received, meta.http);
  if (is_head_forwarded(made.body->size())) [[likely]] {
    head.assign(response_->head, 0, response_->common_bytes);
    meta.http.head_bytes = static_cast<std::uint32_t>(head.size());
    meta.type_offset = response_->type_place.offset;
    meta.type_bytes = response_->type_place.bytes;
    return true;
  }
  http::build_stored_head(received.head, received.directives, made.body->size(), received.arrival(),
                          request_.head_options(), head, meta.http);
  if (received.head.status == 206 &&
      !join_parts(services_, request_, received,
                  [this](std::uint64_t bytes) { return reserve(bytes); },
                  {.meta = meta, .head = head, .tags = tags, .body = made.body})) {
    return false;
  }
  place_content_type(head, meta);
  return true;
}

// Head, meta and, of a joined part, the body of the entry. False where there is nothing to store.
bool StoreWriter::make_entry(const store::ObjectRef& completes, Made& made) {
  ObjectMeta& meta = made.meta;
  std::string& head = made.head;
  std::string tags = std::exchange(tags_, {});
  if (received_->completed && tags.empty()) tags = tags_of(*completes);
  if (!make_head(made, tags)) return false;
  // Behind the head in this order, in which HeadParts finds them: trailers, large body, tags.
  head += response_->trailers;
  if (!finish_parts(made)) return false;
  meta.tag_bytes = static_cast<std::uint32_t>(tags.size());
  head += tags;
  meta.variant = response_->variant;
  meta.primary_bytes = static_cast<std::uint32_t>(request_.key.size());
  meta.names_bytes = static_cast<std::uint32_t>(response_->names.size());
  const bool is_plain = response_->trailers.empty() && meta.http.status != 206 && !on_disk_alone_;
  meta.plain = is_plain ? ObjectMeta::kPlain : 0;
  if (cache::is_on_probation(response_->admitted)) meta.plain |= ObjectMeta::kOnProbation;
  return true;
}

// Makes the keys of its body's parts. False if the body lies nowhere else, and not there.
bool StoreWriter::finish_parts(Made& made) {
  const bool is_wanted = received_->head.status != 206 && may_be_on_disk();
  if (is_wanted && !parts_ && !parts_failed_ && !fits_one_record(made.body->size())) {
    make_parts();
    if (!parts_->begin(*made.body)) parts_.reset();
  }
  if (made.body->size() == 0) parts_.reset();  // there is none of it, wherever it was to lie
  if (!parts_) return !on_disk_alone_;
  const auto large = parts_->finish(*made.body);
  parts_.reset();
  if (!large) return !on_disk_alone_;
  made.head += write_large_body(*large);
  made.meta.large_bytes = kLargeBodyBytes;
  return true;
}

store::ObjectRef StoreWriter::make_object(const Made& made) {
  // Most responses have no variants, and then the request's key is the object's.
  std::string joined;
  std::string_view key = request_.key;
  if (!response_->names.empty() || !response_->variant_key.empty()) {
    joined = request_.key + response_->names + response_->variant_key;
    key = joined;
  }
  const store::ObjectParts parts = {
      .key = key, .meta = std::as_bytes(std::span(&made.meta, 1)), .head = made.head};
  if (on_disk_alone_) {
    auto object = services_.store.make_small(parts, {});
    return object ? std::move(*object) : store::ObjectRef();
  }
  const store::BodyRef& body = made.body;
  const cache::ObjectSizes sizes = {.key = key.size(),
                                    .meta = sizeof(ObjectMeta),
                                    .head = made.head.size(),
                                    .body = body->size()};
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
  Made made{.meta = {}, .head = take_text(), .body = body};
  store::ObjectRef object;
  // The kernel holds what is in memory to the bound of now; of this it does not know the size.
  const Runtime& present = services_.worker.present_runtime();
  std::uint64_t bytes_max = received_->request_policy->max_object_bytes;
  if (&present != request_.runtime.get()) {
    bytes_max = std::min(bytes_max, present.reverse.max_object_bytes);
  }
  const bool fits = !on_disk_alone_ || body->size() <= bytes_max;
  if (fits && make_entry(completes, made)) object = make_object(made);
  give_text(std::move(made.head));
  if (!object) {
    stop(body.get());
    return Result::kUnfit;
  }
  state_ = State::kNo;
  ResidentMark resident(services_, request_);
  const auto outcome = commit_entry(services_, request_,
                                    {.object = object,
                                     .received = *received_,
                                     .keep_until = keep_until(request_, *received_, made.meta.http),
                                     .admitted = response_->admitted,
                                     .reserved_bytes = std::exchange(reserved_bytes_, 0)});
  if (outcome != cache::CommitOutcome::kStored && outcome != cache::CommitOutcome::kReplaced) {
    services_.stats.store_aborts.add();
    if (outcome != cache::CommitOutcome::kSuperseded) return Result::kRefused;
    services_.stats.overtaken.add();
    return Result::kOvertaken;
  }
  // An object on disk alone is not named as resident: the filter is of the memory.
  if (!on_disk_alone_) resident.keep();
  services_.stats.stored.add();
  services_.stats.stored_sizes[size_bucket(body->size())].add();
  services_.stats.stored_bytes.add(on_disk_alone_ ? body->size() : object->charge());
  return outcome == cache::CommitOutcome::kReplaced ? Result::kReplaced : Result::kStored;
}

}  // namespace encore::server

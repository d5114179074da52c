#include "proxy/client/http1_replies.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "proxy/client/http1_text.h"
#include "proxy/http/stored_meta.h"
#include "proxy/intake/plain_hit.h"

namespace encore::server {
namespace {

// Bytes that a client will have taken in so many seconds come free by themselves.
constexpr std::uint64_t kSlowSeconds = 2;
// Over which the least pace is measured where a client may take nothing for any time.
constexpr Nanoseconds kPaceWindow = std::chrono::seconds(60);

std::size_t put(std::string_view text, char* out) {
  std::memcpy(out, text.data(), text.size());
  return text.size();
}

std::uint64_t less(std::uint64_t from, std::uint64_t bytes) { return from - std::min(from, bytes); }

// Gathers a response that fits a slot, whose head ends with what was written into the batch's room.
[[gnu::always_inline]] inline void add_inline(ReplyBatch& batch, CacheView& found,
                                              std::size_t tail_bytes) {
  const store::Object& object = *found.object;
  batch.add_stored(stored_head_of(object));
  batch.commit_text(tail_bytes);
  batch.add_stored(object.inline_body());
  batch.hold(std::move(found.object));
}

}  // namespace

void Http1Replies::add_hit(const HitRequest& request, CacheView& found) {
  const RequestView& view = request.view;
  const store::Object& object = *found.object;
  const http::StoredMeta& meta = meta_of(object).http;
  const HitLines lines(*services_.runtime, view, request.form);
  ReplyBatch& batch = services_.http1.batch;
  if (!batch.has_room(lines.bytes_max() + kConnectionFieldBytesMax + kHeadEnd.size()) &&
      !write_batch()) [[unlikely]] {
    return record_unsent(view, meta.status);
  }
  const MonotonicTime now = services_.loop.now();
  char* const room = batch.text_room();
  std::size_t tail = lines.write(meta, now, room);
  const std::string_view connection = connection_field(view.head->version, request.is_kept);
  if (!connection.empty()) [[unlikely]] {
    tail += put(connection, room + tail);
  }
  tail += put(kHeadEnd, room + tail);
  const HitCount count{.started = now,
                       .status = meta.status,
                       .sent_bytes = meta.head_bytes + tail + object.body_size(),
                       .body_bytes = object.body_size(),
                       .listener = listener_.counts.get(),
                       .rule = view.rule};
  services_.log.tell_hit(view, object);
  if (object.body() != nullptr || services_.log.wants_records()) {
    return add_recorded(request, found, count, {room, tail});
  }
  add_inline(batch, found, tail);
  // The hit is recorded after it was written; pipelined ones in front of it were recorded before.
  if (request.is_last_read && !write_batch()) {
    RequestRecord record = record_of(view, count, listener_, identity_.client());
    set_unsent(record);
    services_.log.record(record);
    return;
  }
  services_.log.count(count, *view.head);
}

// One that goes by itself, or of which more is told than counts.
void Http1Replies::add_recorded(const HitRequest& request, CacheView& found, const HitCount& count,
                                std::string_view tail) {
  const store::Object& object = *found.object;
  RequestRecord record = record_of(request.view, count, listener_, identity_.client());
  if (request.is_kept) record.connection = ClientConnectionEnd::kKept;
  std::string fields;
  if (services_.runtime->logs_response_fields) [[unlikely]] {
    fields.append(stored_head_of(object)).append(tail);
  }
  record.response_fields = fields;
  const store::ObjectRef logged = services_.log.is_logging() ? found.object : store::ObjectRef();
  if (logged) record.content_type = content_type_of(*logged);
  if (object.body() != nullptr) {
    if (!send_large(found, record, tail)) return keep(request, record, logged);
  } else {
    add_inline(services_.http1.batch, found, tail.size());
    if (request.is_last_read && !write_batch()) set_unsent(record);
  }
  services_.log.record(record);
}

// Bodies of more than a slot go by themselves, after what was gathered before them. False where
// the client has not taken all of it yet.
bool Http1Replies::send_large(CacheView& found, RequestRecord& record, std::string_view tail) {
  const store::Object& object = *found.object;
  std::string own_tail(tail);
  if (!flush()) {
    set_unsent(record);
    return true;
  }
  const bool blocked = is_pending();
  Pending& reply = pending();
  reply.writer.add_text(std::string(stored_head_of(object)));
  reply.writer.add_text(std::move(own_tail));
  const bool opened = reply.content.set_body(store::BodyRef::share(object.body()));
  ENCORE_CHECK(opened, "a stored body is kept");
  reply.content.add_range(0, object.body_size());
  reply.content.hold(std::move(found.object));
  reply.writer.set_content(reply.content, Http1Writer::Coding::kIdentity);
  reply.record = &record;
  if (!blocked) pump();
  return !is_pending();
}

// The record of a hit that is pending ends with it.
void Http1Replies::keep(const HitRequest& request, const RequestRecord& record,
                        const store::ObjectRef& logged) {
  Pending& reply = *pending_;
  reply.request =
      RequestContext::make(services_.runtime, request.view, request.text, identity_.client());
  RequestRecord& kept = reply.own_record.emplace(record);
  reply.record = &kept;
  tell_request(*reply.request, kept);
  reply.response_fields = record.response_fields;
  kept.response_fields = reply.response_fields;
  kept.first_byte = monotonic_now() - record.started;
  reply.object = logged;
}

void Http1Replies::record_unsent(const RequestView& view, int status) {
  RequestRecord record = record_of(view,
                                   {.started = services_.loop.now(),
                                    .status = status,
                                    .listener = listener_.counts.get(),
                                    .rule = view.rule},
                                   listener_, identity_.client());
  set_unsent(record);
  services_.log.record(record);
}

void Http1Replies::send(std::string reply) {
  pending().writer.add_text(std::move(reply));
  pump();
}

bool Http1Replies::write_batch() {
  ReplyBatch& batch = services_.http1.batch;
  // Behind what the client has not taken yet nothing is written out of turn.
  net::WriteResult result{.status = net::WriteStatus::kBlocked};
  if (!is_pending()) result = stream_.write(batch.parts());
  if (result.status == net::WriteStatus::kBlocked) {
    std::size_t skip = result.bytes;
    std::string rest;
    for (const iovec& part : batch.parts()) {
      const std::size_t from = std::min(skip, part.iov_len);
      skip -= from;
      rest.append(static_cast<const char*>(part.iov_base) + from, part.iov_len - from);
    }
    Http1Writer& writer = pending().writer;
    writer.add_text(std::move(rest));
    writer.set_blocked();
    account(writer);
  }
  batch.clear();
  if (result.status == net::WriteStatus::kError) {
    owner_.on_pumped(Http1Writer::Status::kDead);
    return false;
  }
  return true;
}

Http1Replies::Pending& Http1Replies::pending() {
  if (pending_ == nullptr) pending_ = std::make_unique<Pending>();
  return *pending_;
}

void Http1Replies::pump() {
  const Http1Writer::Status status = pending_->writer.pump(stream_);
  account(pending_->writer);
  if (status == Http1Writer::Status::kDone) end({.outcome = Outcome::kHit});
  owner_.on_pumped(status);
}

void Http1Replies::end(const ClientGone& how) {
  const auto ended = std::move(pending_);
  if (ended == nullptr || ended->record == nullptr) return;
  RequestRecord& record = *ended->record;
  if (how.outcome != Outcome::kHit) {
    const bool is_lost = how.unsent == ClientGone::Unsent::kLost;
    const std::uint64_t unsent = is_lost ? stream_.bytes_unsent() : 0;
    record.outcome = how.outcome;
    record.detail = how.detail;
    record.connection = ClientConnectionEnd::kCut;
    record.body_bytes = less(ended->content.body_bytes(), unsent);
    record.sent_bytes = less(std::min(record.sent_bytes, ended->writer.sent_bytes()), unsent);
  }
  if (ended->request == nullptr) return;
  services_.log.record(record);
}

void Http1Replies::account(const Http1Writer& writer) {
  if (!writer.is_blocked() && holding_.bytes() == 0) return;
  holding_.set(services_.transfer_memory, identity_.client(),
               writer.is_blocked() ? writer.held_bytes() : 0);
}

bool Http1Replies::is_over_share() const {
  return holding_.is_over(services_.runtime->config.limits.transfer_memory_per_client_bytes);
}

bool Http1Replies::is_too_slow(Http1Writer& writer, MonotonicTime now) {
  if (!writer.is_blocked()) {
    writer.pace().look_at_unblocked();
    return false;
  }
  writer.pace().look_at_blocked(now, stream_.bytes_taken());
  account(writer);  // what the cache had a moment ago may be kept for this client alone now
  const config::Config& config = services_.runtime->config;
  Nanoseconds window = config.timeouts.client_write;
  if (window.count() == 0) window = kPaceWindow;
  return writer.pace().is_below({config.limits.client_write_rate_min, window});
}

std::optional<SlowReader> Http1Replies::slow_reader(const Http1Writer& writer) const {
  if (!writer.pace().is_known()) return std::nullopt;
  const std::uint64_t rate = writer.pace().bytes_per_second();
  if (holding_.bytes() / kSlowSeconds <= rate) return std::nullopt;
  return SlowReader{rate, holding_.bytes(), is_over_share()};
}

}  // namespace encore::server

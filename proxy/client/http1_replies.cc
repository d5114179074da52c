#include "proxy/client/http1_replies.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "proxy/client/http1_text.h"
#include "proxy/client/read_limits.h"
#include "proxy/http/stored_meta.h"
#include "proxy/intake/plain_hit.h"

namespace encore::server {
namespace {

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
                       .rule = view.rule,
                       .client = &identity_.client()};
  services_.log.tell_hit(view, object);
  if (object.body() != nullptr || services_.log.wants_records()) {
    return add_recorded(request, found, count, {room, tail});
  }
  const bool is_alone = request.is_last_read && batch.empty() && !is_pending();
  add_inline(batch, found, tail);
  if (!is_alone) [[unlikely]] {
    services_.log.note(count, *view.head);
    services_.http1.gathered.push_back({.count = count, .kept = nullptr});
    if (request.is_last_read) (void)write_batch();
    return;
  }
  const Written written = write_alone();
  if (written == Written::kTaken) [[likely]] {
    return services_.log.count(count, *view.head);
  }
  if (written == Written::kGone) return record_unsent(view, meta.status);
  services_.log.note(count, *view.head);
  owe({.count = count, .kept = nullptr}, pending_->writer.held_bytes());
}

// A hit that goes by itself, or of which more is recorded than counts.
void Http1Replies::add_recorded(const HitRequest& request, CacheView& found, const HitCount& count,
                                std::string_view tail) {
  const store::Object& object = *found.object;
  ReplyBatch& batch = services_.http1.batch;
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
    if (send_large(found, record, tail)) return services_.log.record(record);
    // The record of a hit that is pending ends with it.
    Pending& reply = *pending_;
    reply.kept = keep(request, record, logged);
    reply.kept->record.first_byte = monotonic_now() - record.started;
    reply.record = &reply.kept->record;
    return;
  }
  const bool is_alone = request.is_last_read && batch.empty() && !is_pending();
  add_inline(batch, found, tail.size());
  if (!is_alone) {
    services_.http1.gathered.push_back({.count = count, .kept = keep(request, record, logged)});
    if (request.is_last_read) (void)write_batch();
    return;
  }
  const Written written = write_alone();
  if (written == Written::kPending) {
    return owe({.count = count, .kept = keep(request, record, logged)},
               pending_->writer.held_bytes());
  }
  if (written == Written::kGone) set_unsent(record);
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

std::unique_ptr<KeptRecord> Http1Replies::keep(const HitRequest& request,
                                               const RequestRecord& record,
                                               const store::ObjectRef& logged) const {
  auto kept = std::make_unique<KeptRecord>();
  kept->request =
      RequestContext::make(services_.runtime, request.view, request.text, identity_.client());
  kept->record = record;
  record_request(*kept->request, kept->record);
  kept->response_fields = record.response_fields;
  kept->record.response_fields = kept->response_fields;
  kept->object = logged;
  return kept;
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

// Nothing was gathered in front of it.
Http1Replies::Written Http1Replies::write_alone() {
  if (!write_batch()) return Written::kGone;
  return is_pending() ? Written::kPending : Written::kTaken;
}

bool Http1Replies::write_batch() {
  ReplyBatch& batch = services_.http1.batch;
  // Behind what the client has not taken yet nothing is written out of turn.
  net::WriteResult result{.status = net::WriteStatus::kBlocked};
  if (!is_pending()) result = stream_.write(batch.parts());
  if (!services_.http1.gathered.empty()) [[unlikely]] {
    settle(result);
  }
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

// Records what the socket has taken of the gathered hits; the rest is owed, or lost.
void Http1Replies::settle(const net::WriteResult& written) {
  std::uint64_t left = written.bytes;
  for (GatheredHit& hit : services_.http1.gathered) {
    const std::uint64_t bytes = hit.count.sent_bytes;
    const std::uint64_t taken = std::min(left, bytes);
    left -= taken;
    if (taken == bytes) {
      record_taken(hit);
    } else if (written.status == net::WriteStatus::kError) {
      record_cut(hit, {.detail = "reset"}, taken);
    } else {
      owe(std::move(hit), bytes - taken);
    }
  }
  services_.http1.gathered.clear();
}

// Its last bytes are pending, behind those of the hits before it.
void Http1Replies::owe(GatheredHit hit, std::uint64_t bytes_left) {
  Pending& reply = pending();
  ENCORE_CHECK(bytes_left <= hit.count.sent_bytes, "what is left of a hit is a part of it");
  const std::uint64_t taken = hit.count.sent_bytes - bytes_left;
  reply.owed.push_back({.hit = std::move(hit), .taken_before = taken, .begin = reply.owed_bytes});
  reply.owed_bytes += bytes_left;
}

// Records those that are all sent by now.
void Http1Replies::settle_owed(Pending& reply) {
  const std::uint64_t sent = reply.writer.sent_bytes();
  const auto is_sent = [sent](const UnsentHit& each) { return each.end() <= sent; };
  const auto left = std::ranges::find_if_not(reply.owed, is_sent);
  for (auto at = reply.owed.begin(); at != left; ++at) record_taken(at->hit);
  reply.owed.erase(reply.owed.begin(), left);
}

void Http1Replies::record_taken(const GatheredHit& hit) {
  if (hit.kept == nullptr) return services_.log.count_noted(hit.count);
  services_.log.record(hit.kept->record);
}

void Http1Replies::record_cut(const GatheredHit& hit, const ClientGone& how, std::uint64_t bytes) {
  RequestRecord record;
  if (hit.kept != nullptr) {
    record = hit.kept->record;
  } else {
    record.client = &identity_.client();
    record.started = hit.count.started;
    record.status = hit.count.status;
    record.listener = hit.count.listener;
    record.listener_name = listener_.name;
    record.rule = hit.count.rule;
  }
  record.outcome = how.outcome;
  record.detail = how.detail;
  record.connection = ClientConnectionEnd::kCut;
  record.sent_bytes = bytes;
  record.body_bytes = less(bytes, hit.count.sent_bytes - hit.count.body_bytes);
  services_.log.record(record);
}

Http1Replies::Pending& Http1Replies::pending() {
  if (pending_ == nullptr) pending_ = std::make_unique<Pending>();
  return *pending_;
}

void Http1Replies::pump() {
  const Http1Writer::Status status = pending_->writer.pump(stream_);
  account(pending_->writer);
  settle_owed(*pending_);
  if (status == Http1Writer::Status::kDone) end({.outcome = Outcome::kHit});
  owner_.on_pumped(status);
}

void Http1Replies::end(const ClientGone& how) {
  const auto ended = std::move(pending_);
  if (ended == nullptr) return;
  const bool is_lost = how.outcome != Outcome::kHit && how.unsent == ClientGone::Unsent::kLost;
  const std::uint64_t unsent = is_lost ? stream_.bytes_unsent() : 0;
  const std::uint64_t sent = less(ended->writer.sent_bytes(), unsent);
  for (const UnsentHit& each : ended->owed) {
    const std::uint64_t behind = std::min(less(sent, each.begin), each.end() - each.begin);
    record_cut(each.hit, how, each.taken_before + behind);
  }
  if (ended->record == nullptr) return;
  RequestRecord& record = *ended->record;
  if (how.outcome != Outcome::kHit) {
    record.outcome = how.outcome;
    record.detail = how.detail;
    record.connection = ClientConnectionEnd::kCut;
    record.body_bytes = less(ended->content.body_bytes(), unsent);
    record.sent_bytes = std::min(record.sent_bytes, less(sent, ended->owed_bytes));
  }
  if (ended->kept == nullptr) return;
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
    writer.pace().record_unblocked();
    return false;
  }
  writer.pace().record_blocked(now, stream_.bytes_taken());
  account(writer);  // this client alone may now keep what the cache had a moment ago
  return writer.pace().is_below(minimum_read_rate(services_.runtime->config));
}

std::optional<SlowReader> Http1Replies::slow_reader(const Http1Writer& writer) const {
  if (!is_slow_for(writer.pace(), holding_.bytes())) return std::nullopt;
  return SlowReader{writer.pace().bytes_per_second(), holding_.bytes(), is_over_share()};
}

}  // namespace encore::server

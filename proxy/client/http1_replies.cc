// Plain hits and refusals of an HTTP/1 connection, and replies that its client does not take at
// once.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "proxy/client/http1_connection.h"
#include "proxy/client/http1_pending.h"
#include "proxy/client/http1_text.h"
#include "proxy/http/coded_head.h"
#include "proxy/http/head_text.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/reply_text.h"
#include "proxy/http/stored_meta.h"
#include "proxy/intake/hit_record.h"
#include "proxy/intake/purge_refusal.h"
#include "proxy/settings/refusal_keys.h"

namespace encore::server {
namespace {

// What a client will have taken in so many seconds comes free by itself.
constexpr std::uint64_t kSlowSeconds = 2;
// Over which the least pace is measured where a client may take nothing for any time.
constexpr Nanoseconds kPaceWindow = std::chrono::seconds(60);

// What a hit adds to its stored head beside the Via line.
constexpr std::size_t kTailBytesMax =
    http::kHitFieldsBytesMax + kConnectionFieldBytesMax + kHeadEnd.size();

// Nothing, but somewhere: memcpy wants to know where.
constexpr std::string_view kNothing = kHeadEnd.substr(0, 0);

// Refusals one behind the other that leave the connection open. More would spare a client who asks
// for nothing else the connections that it costs him.
constexpr std::uint8_t kRefusalsInRowMax = 3;

// Whether what comes behind its head is the next request, and nothing else was sent ahead: not by
// who has asked for a tunnel or another protocol, and may speak it already without waiting.
bool ends_with_its_head(const RequestView& view) {
  const http::RequestHead& head = *view.head;
  const bool has_content =
      view.framing.kind != http::BodyKind::kNone &&
      (view.framing.kind != http::BodyKind::kLength || view.framing.length != 0);
  return !has_content && head.method != http::Method::kConnect &&
         !head.fields.has(http::FieldId::kUpgrade) && http::keep_alive(head);
}

std::size_t put(std::string_view text, char* out) {
  std::memcpy(out, text.data(), text.size());
  return text.size();
}

// For clients that are told; else empty.
std::string id_line(const Runtime& runtime, const RequestView& view) {
  std::string line;
  if (runtime.config.log.request_id == config::RequestIds::kRespond) [[unlikely]] {
    http::append_field(kRequestIdField, view.request_id, line);
  }
  return line;
}

// Returns the fields of the response, as sent, for the log.
std::string logged_fields(const Runtime& runtime, const store::Object& object,
                          std::string_view tail) {
  std::string fields;
  if (runtime.logs_response_fields) [[unlikely]] {
    fields.append(stored_head_of(object)).append(tail);
  }
  return fields;
}

std::uint64_t less(std::uint64_t from, std::uint64_t bytes) { return from - std::min(from, bytes); }

// Gathers a response that fits a slot, whose head ends with what was written into the batch's room.
void add_inline(ReplyBatch& batch, CacheView& found, std::size_t tail_bytes) {
  const store::Object& object = *found.object;
  batch.add_stored(stored_head_of(object));
  batch.commit_text(tail_bytes);
  batch.add_stored(object.inline_body());
  batch.hold(std::move(found.object));
}

}  // namespace

void Http1Connection::reply_hit(const RequestView& view, std::string_view head_bytes,
                                CacheView& found, HitForm form) {
  const http::RequestHead& head = *view.head;
  const store::Object& object = *found.object;
  const MonotonicTime now = services_.loop.now();
  const http::StoredMeta& meta = meta_of(object).http;
  if (!http::keep_alive(head) || is_draining()) phase_ = Phase::kLast;
  ReplyBatch& batch = services_.http1.batch;
  const bool plain = view.policy == nullptr;
  std::string_view via = kNothing;
  if (plain || view.policy->via) via = services_.runtime->via_field_11;
  std::string_view further = kNothing;  // what a rule adds
  if (view.rule != nullptr) further = view.rule->response_edits().lines();
  const std::string_view vary = form == HitForm::kVaries ? http::kVaryByCodingField : kNothing;
  const std::string id_field = id_line(*services_.runtime, view);
  const std::size_t more = further.size() + vary.size() + id_field.size();
  if (!batch.has_room(kTailBytesMax + via.size() + more) && !flush_batch()) [[unlikely]] {
    return record_unsent(services_.log, {.view = view,
                                         .client = client_,
                                         .listener = listener_.counts.get(),
                                         .listener_name = listener_.name,
                                         .tls = tls_.get(),
                                         .now = now,
                                         .status = meta.status});
  }
  char* const room = batch.text_room();
  const std::uint32_t age = http::current_age(meta, now);
  std::size_t tail = plain || view.policy->cache_status
                         ? http::write_hit_fields(age, http::remaining_ttl(meta, now), via, room)
                         : http::write_age_fields(age, via, room);
  if (more != 0) [[unlikely]] {
    for (const std::string_view lines : {further, vary, std::string_view(id_field)}) {
      tail += put(lines, room + tail);
    }
  }
  tail += put(connection_field(head.version, phase_ == Phase::kOpen), room + tail);
  tail += put(kHeadEnd, room + tail);
  const HitCount count{.started = now,
                       .status = meta.status,
                       .sent_bytes = meta.head_bytes + tail + object.body_size(),
                       .body_bytes = object.body_size(),
                       .listener = listener_.counts.get(),
                       .rule = view.rule};
  services_.log.tell_hit(view, object);
  if (object.body() != nullptr || services_.log.wants_records()) {
    return reply_hit_recorded(view, head_bytes, found, {count, {room, tail}});
  }
  add_inline(batch, found, tail);
  // The hit is recorded after it was written; pipelined ones in front of it were recorded before.
  if ((is_last_read_ || phase_ == Phase::kLast) && !flush_batch()) {
    RequestRecord record = record_of(view, count);
    set_unsent(record);
    services_.log.record(record, &head, client_);
    return;
  }
  services_.log.count(count, head);
  if (phase_ == Phase::kLast && pending_ == nullptr) close(After::kClose);
}

// One that goes by itself, or of which more is told than counts.
void Http1Connection::reply_hit_recorded(const RequestView& view, std::string_view head_bytes,
                                         CacheView& found, const HitTail& tail) {
  const store::Object& object = *found.object;
  RequestRecord record = record_of(view, tail.count);
  record.tls = tls_.get();
  record.listener_name = listener_.name;
  if (phase_ == Phase::kOpen) record.connection = ClientConnectionEnd::kKept;
  std::string fields = logged_fields(*services_.runtime, object, tail.text);
  record.response_fields = fields;
  const store::ObjectRef logged = services_.log.is_logging() ? found.object : store::ObjectRef();
  if (logged) record.content_type = content_type_of(*logged);
  // Bodies of more than a slot go by themselves, after what was gathered before them. False where
  // the client has not taken all of it yet.
  const auto send_large = [&] {
    const std::string own_tail(tail.text);
    if (!services_.http1.batch.empty() && !flush_batch()) {
      set_unsent(record);
      return true;
    }
    const bool blocked = pending_ != nullptr;
    Http1Pending& reply = pending();
    reply.writer.add_text(std::string(stored_head_of(object)));
    reply.writer.add_text(own_tail);
    const bool opened = reply.content.set_body(store::BodyRef::share(object.body()));
    ENCORE_CHECK(opened, "a stored body is kept");
    reply.content.add_range(0, object.body_size());
    reply.content.hold(std::move(found.object));
    reply.writer.set_content(reply.content, Http1Writer::Coding::kIdentity);
    reply.record = &record;
    if (!blocked) pump_pending();
    return pending_ == nullptr || is_closed();
  };
  if (object.body() != nullptr) {
    if (!send_large()) {
      pending_->request = RequestContext::make(services_.runtime, view, head_bytes, client_);
      RequestRecord& kept = pending_->own_record.emplace(record);
      pending_->record = &kept;
      kept.taken_bytes = 0;  // which it adds
      kept.tell_of(*pending_->request);
      pending_->response_fields = std::move(fields);
      kept.response_fields = pending_->response_fields;
      kept.first_byte = monotonic_now() - record.started;
      pending_->object = logged;
      return;
    }
  } else {
    add_inline(services_.http1.batch, found, tail.text.size());
    if ((is_last_read_ || phase_ == Phase::kLast) && !flush_batch()) set_unsent(record);
  }
  services_.log.record(record, view.head, client_);
  if (phase_ == Phase::kLast && pending_ == nullptr) close(After::kClose);
}

// Answers with an error, and closes where the next request's beginning is not certain, or where
// nothing but what is refused comes.
void Http1Connection::refuse(const Refusal& refusal, const RequestView* view) {
  if (gate_ != nullptr && gate_->awaits_header()) {
    // The client did not begin with a PROXY header.
    services_.stats.proxy_headers_bad.add();
    close(After::kClose);
    return;
  }
  const bool is_gone = !services_.http1.batch.empty() && !flush_batch();
  const bool is_read =
      refusal.outcome != Outcome::kBadRequest || refusal.is_head_read || view != nullptr;
  const http::RequestHead* const head = is_read ? &services_.http1.head : nullptr;
  http::CacheStatus cache_status;
  cache_status.detail = refusal.detail;
  const ListenerPolicy* const policy = services_.runtime->policy(listener_.index);
  cache_status.said = policy == nullptr || policy->cache_status;
  const std::string explained = std::string(refusal.text) +
                                " Reason: " + std::string(refusal.detail) +
                                named_keys(listener_.mode, refusal.detail) + ".";
  http::OwnReply reply =
      http::make_own_reply(refusal.status, explained, services_.loop.http_date(), cache_status,
                           services_.runtime->error_pages.find(refusal.status));
  reply.head += refusal.fields;
  std::string_view id;
  if (services_.runtime->identifies_all)
    id = request_id(services_.ids, inside_ == nullptr ? gate_.get() : nullptr, policy, head);
  if (services_.runtime->config.log.request_id == config::RequestIds::kRespond) {
    http::append_field(kRequestIdField, id, reply.head);
  }
  const bool stays = refusal.further == Refusal::Further::kMayStay && view != nullptr &&
                     ends_with_its_head(*view) && !is_draining() &&
                     refusals_in_row_ < kRefusalsInRowMax;
  ++refusals_in_row_;
  reply.head += connection_field(head == nullptr ? http::Version::kHttp11 : head->version, stays);
  reply.head += kHeadEnd;
  if (head != nullptr && head->method == http::Method::kHead) reply.body.clear();
  reply.head += reply.body;
  if (!stays && !is_gone) phase_ = Phase::kLast;
  RequestRecord record;
  record.body_bytes = reply.body.size();
  record.outcome = refusal.outcome;
  record.started = services_.loop.now();
  record.status = refusal.status;
  record.sent_bytes = reply.head.size();
  if (head != nullptr && gate_ != nullptr) record.user = gate_->user();
  record.tls = tls_.get();
  record.intercepted = inside_ != nullptr;
  record.listener = listener_.counts.get();
  record.rule = view != nullptr ? view->rule : refusal.rule;
  record.detail = refusal.detail;
  record.listener_name = listener_.name;
  record.request_id = id;
  if (head != nullptr) record.taken_bytes = head->head_size;
  if (stays) record.connection = ClientConnectionEnd::kKept;
  std::string fields;
  if (services_.runtime->logs_response_fields) {
    fields = reply.head.substr(0, reply.head.find("\r\n\r\n"));
    record.response_fields = fields;
  }
  if (is_gone) set_unsent(record);
  services_.log.record(record, head, client_);
  if (head != nullptr) {
    note_refused_purge(*services_.runtime, services_.stats, listener_, *head, client_,
                       refusal.detail);
  }
  if (is_gone) return;
  pending().writer.add_text(std::move(reply.head));
  pump_pending();
}

bool Http1Connection::flush_batch() {
  ReplyBatch& batch = services_.http1.batch;
  // Behind what the client has not taken yet nothing is written out of turn.
  net::WriteResult result{.status = net::WriteStatus::kBlocked};
  if (pending_ == nullptr) result = stream_.write(batch.parts());
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
    close(After::kAbort, {.detail = "reset"});
    return false;
  }
  return true;
}

Http1Pending& Http1Connection::pending() {
  if (pending_ == nullptr) pending_ = std::make_unique<Http1Pending>();
  return *pending_;
}

void Http1Connection::pump_pending() {
  const Http1Writer::Status status = pending_->writer.pump(stream_);
  account(pending_->writer);
  switch (status) {
    case Http1Writer::Status::kDone:
      end_pending({.outcome = Outcome::kHit});
      if (phase_ == Phase::kLast && request_ == nullptr) close(After::kClose);
      return;
    case Http1Writer::Status::kBlocked:
    case Http1Writer::Status::kWaiting:
      return;
    case Http1Writer::Status::kMore:
      later().wait_for_share();
      return;
    case Http1Writer::Status::kBroken:
      close(After::kClose);  // its length shows that it is not whole
      return;
    case Http1Writer::Status::kDead:
      close(After::kAbort, {.detail = "reset"});
      return;
  }
}

// The large hit among what was pending, if there was one, came to this.
void Http1Connection::end_pending(const ClientGone& how) {
  const auto ended = std::move(pending_);
  if (ended->record == nullptr) return;
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
  services_.log.record(record, &ended->request->head, ended->request->client);
}

// The client has taken what it was slow to take: what waited behind that goes on.
void Http1Connection::after_pending() {
  if (is_closed() || pending_ != nullptr) return;
  if (request_ != nullptr) {
    request_->start();
  } else if (tunnel_ != nullptr) {
    tunnel_->start();
  } else if (interceptor_ != nullptr) {
    interceptor_->start();
  } else {
    next_request();
  }
}

Http1Writer* Http1Connection::writer() const {
  if (pending_ != nullptr) return &pending_->writer;
  return request_ != nullptr ? &request_->writer() : nullptr;
}

// Counts what the writer holds in memory because the client does not take it.
void Http1Connection::account(const Http1Writer& writer) {
  if (!writer.is_blocked() && holding_.bytes() == 0) return;
  holding_.set(services_.transfer_memory, client_, writer.is_blocked() ? writer.held_bytes() : 0);
}

bool Http1Connection::is_over_share() const {
  return holding_.is_over(services_.runtime->config.limits.transfer_memory_per_client_bytes);
}

void Http1Connection::look_at_reader(MonotonicTime now) {
  Http1Writer* const writer = this->writer();
  if (is_closed() || writer == nullptr) return;
  if (!writer->is_blocked()) {
    writer->pace().look_at_unblocked();
    return;
  }
  writer->pace().look_at_blocked(now, stream_.bytes_taken());
  account(*writer);  // what the cache had a moment ago may be kept for this client alone now
  const config::Config& config = services_.runtime->config;
  Nanoseconds window = config.timeouts.client_write;
  if (window.count() == 0) window = kPaceWindow;
  if (writer->pace().is_below({config.limits.client_write_rate_min, window})) cut_reader();
}

std::optional<SlowReader> Http1Connection::slow_reader() const {
  const Http1Writer* const writer = this->writer();
  if (is_closed() || writer == nullptr || !writer->pace().is_known()) return std::nullopt;
  const std::uint64_t rate = writer->pace().bytes_per_second();
  if (holding_.bytes() / kSlowSeconds <= rate) return std::nullopt;
  return SlowReader{rate, holding_.bytes(), is_over_share()};
}

bool Http1Connection::may_be_given_up() const {
  return is_idle() && !is_closed() && head_since_ == MonotonicTime{} && stream_.kept_bytes() == 0;
}

void Http1Connection::cut(const ClientGone& why) {
  After how = After::kClose;
  if (request_ != nullptr) how = request_->after_cut();
  if (tunnel_ != nullptr) how = tunnel_->after_cut();
  close(how, why);
}

void Http1Connection::cut_reader() {
  if (is_closed()) return;
  if (pending_ == nullptr && request_ != nullptr) {
    request_->cut();
    return;
  }
  services_.stats.slow_readers_cut.add();
  if (pending_ != nullptr) end_pending({.outcome = Outcome::kSlowReader});
  close(After::kAbort);
}

}  // namespace encore::server

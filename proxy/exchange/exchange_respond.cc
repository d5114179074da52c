// The second half of an exchange: what it answers, and the sending of it.
#include <utility>

#include "base/check.h"
#include "proxy/exchange/client_cache_control.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/published.h"
#include "proxy/exchange/rule_reply.h"
#include "proxy/http/head_text.h"
#include "proxy/http/reply_text.h"
#include "proxy/http/scan.h"
#include "proxy/request/request_ids.h"
#include "proxy/settings/refusal_keys.h"

namespace encore::server {
namespace {

// Why content ended before it was whole. Each may be null: it has no part in it.
Outcome broken_outcome(const CodedBody* coded, const DiskBody* disk, const Transfer* transfer) {
  if (coded != nullptr && coded->ran_out()) return Outcome::kNoMemory;
  if (disk != nullptr) return Outcome::kCacheAborted;
  const bool out_of_memory = transfer != nullptr && transfer->is_out_of_memory();
  return out_of_memory ? Outcome::kNoMemory : Outcome::kOriginAborted;
}

// The request's id, where clients are told; and what the log wants of the head.
void add_log_fields(const RequestContext& request, std::string& head, std::string& logged) {
  const Runtime& runtime = *request.runtime;
  if (runtime.config.log.request_id == config::RequestIds::kRespond) [[unlikely]] {
    http::append_field(kRequestIdField, request.request_id, head);
  }
  if (runtime.logs_response_fields) [[unlikely]] {
    logged = head;
  }
}

// Content that the store has no body of.
void add_own(std::string content, BodyReader& to, RequestRecord& record) {
  record.body_bytes += content.size();
  to.add_text(std::move(content));
}

}  // namespace

ResponseMoment Exchange::moment() const {
  return {.request = *request_,
          .cache_status = cache_status_,
          .now = services_.loop.now(),
          .wall = services_.loop.wall_now(),
          .http_date = services_.loop.http_date()};
}

ResponseSource Exchange::source_of(const store::ObjectRef& object, Outcome outcome) {
  record_.outcome = outcome;
  const HeadParts parts =
      unstored_ ? HeadParts{.meta = unstored_->meta, .head = unstored_->head} : head_parts(*object);
  const ObjectMeta& meta = parts.meta;
  if (outcome == Outcome::kHit ||
      (outcome == Outcome::kStale && cache_status_.forwarded == http::Forwarded::kNo)) {
    cache_status_.hit = true;
    // Who waited for a transfer and is answered from the store was not forwarded (RFC 9211 2.2).
    cache_status_.forwarded = http::Forwarded::kNo;
  }
  const bool looked_up = object.get() == found_.object.get() && !unstored_;
  cache_status_.ttl = http::remaining_ttl(
      looked_up ? meta_until(*object, found_.fresh_until) : meta.http, services_.loop.now());
  if (outcome == Outcome::kHit && from_disk_) cache_status_.detail = record_.detail = "disk";
  if (outcome == Outcome::kHit && !from_disk_ && meta.is_on_probation()) {
    cache_status_.detail = record_.detail = to_string(Outcome::kProbation);
  }
  if (outcome == Outcome::kStale) cache_status_.detail = "stale";
  if (outcome == Outcome::kRevalidated) cache_status_.detail = "revalidated";
  content_.hold(object);
  record_.content_type = parts.content_type();
  ResponseSource source;
  source.head = parts.stored_head();
  source.more_fields = private_lines_;
  source.meta = &meta.http;
  source.length = body_length_of(*object);
  if (is_on_disk_alone(*object)) {
    source.on_disk = large_body_of(*object);
  } else if (!object->is_inline()) {
    source.body = store::BodyRef::share(object->body());
  }
  source.inline_body = object->inline_body();
  source.stored_trailers = parts.trailers();
  source.whole = meta.http.status == 200;
  source.has_age = true;
  source.is_shared = true;
  return source;
}

void Exchange::respond_stored(const store::ObjectRef& object, Outcome outcome) {
  ResponseSource source = source_of(object, outcome);
  respond(source, coding_.plan(source, unstored_ ? nullptr : &object, moment(), next_turn_));
}

// Begins to read what is wanted of a body that is on disk alone. False where there is no memory.
bool Exchange::open_disk_body(const ResponseSource& source, const ResponsePlan& plan) {
  DiskBody::Wanted wanted{
      .key = request_->hash, .body = *source.on_disk, .begin = 0, .end = source.on_disk->length};
  if (plan.content == ResponsePlan::Content::kParts) {
    wanted.begin = plan.parts.front().range.begin;
    wanted.end = plan.parts.back().range.end;
  } else if (plan.content != ResponsePlan::Content::kWhole && coding_.body() == nullptr) {
    return true;
  }
  disk_body_ = services_.loads.open(wanted, [this] { on_transfer(); });
  if (disk_body_ == nullptr) return false;
  const bool opened = coding_.body() != nullptr
                          ? coding_.set_content(disk_body_->body())
                          : content_.set_body(disk_body_->body(), wanted.begin);
  ENCORE_CHECK(opened, "a body is kept until its reader has opened it");
  disk_body_->body()->stop_retaining();
  return true;
}

namespace {

// A head, with its empty line, without what a rule takes out of heads.
std::string without_fields(std::string_view head, const http::HeadEdits& edits) {
  std::string kept;
  while (!head.empty()) {
    const std::size_t end = std::min(head.find("\r\n"), head.size() - 2) + 2;
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end);
    if (kept.empty() || !edits.leaves_out(line.substr(0, line.find(':')))) kept += line;
  }
  return kept;
}

}  // namespace

void Exchange::respond(const ResponseSource& source, ResponsePlan plan) {
  if (source.on_disk && !open_disk_body(source, plan)) {
    respond_failure(503, Outcome::kNoMemory, "out-of-memory");
    return;
  }
  ENCORE_CHECK(plan.content != ResponsePlan::Content::kLater, "what is sent has been decided");
  go(Step::kRespond);
  record_.status = plan.status;
  if (request_->rule != nullptr) {
    set_client_cache_control(*request_->rule, source, plan);
    request_->rule->response_edits().apply(plan.head);
  }
  ClientStream::Response response;
  response.head = std::move(plan.head);
  response.framing = plan.framing;
  if (plan.framing == ClientStream::Framing::kOpen) {
    trailers_ = std::move(plan.trailers);
    const bool stored = plan.content != ResponsePlan::Content::kRest;
    const std::string* lines = stored ? &trailers_ : source.trailers;
    if (coding_.body() != nullptr) lines = coding_.trailers();
    // Of what a rule takes out of heads, trailers may have the same.
    const bool edited = request_->rule != nullptr && !request_->rule->response_edits().only_adds();
    if (http::accepts_trailers(request_->head) && !edited) response.trailers = lines;
  }
  // A client of HTTP/1.0 may wait for the end of the connection to see that of the response.
  const bool shows_end = plan.framing != ClientStream::Framing::kOpen ||
                         request_->head.version == http::Version::kHttp11;
  if (shows_end && rest_.offer(transfer_.get(), upload_)) {
    response.further = ClientStream::Further::kBehindContent;
  }
  const bool has_content = plan.framing != ClientStream::Framing::kNone &&
                           plan.content != ResponsePlan::Content::kUnread;
  if (has_content) coding_.count();
  give_content(source, plan);
  add_log_fields(*request_, response.head, response_fields_);
  client_.begin(std::move(response), content_);
  pump();
}

void Exchange::give_content(const ResponseSource& source, ResponsePlan& plan) {
  switch (plan.content) {
    case ResponsePlan::Content::kNone:
    case ResponsePlan::Content::kLater:
      return;
    case ResponsePlan::Content::kUnread:
      // Whoever reads no body must not hold back those who do.
      leave_transfer();
      return;
    case ResponsePlan::Content::kWhole:
      give_range(source, {0, *source.length});
      return;
    case ResponsePlan::Content::kRest:
      if (coding_.body() != nullptr) {
        coding_.open(content_);
        if (transfer_ != nullptr) transfer_->mark_opened(*this);
        return;
      }
      open_body(source, 0);
      content_.add_rest();
      return;
    case ResponsePlan::Content::kParts:
      for (ResponsePlan::Part& part : plan.parts) {
        add_own(std::move(part.text), content_, record_);
        give_range(source, part.range);
      }
      add_own(std::move(plan.end), content_, record_);
      return;
  }
}

void Exchange::give_range(const ResponseSource& source, const http::ByteRange& range) {
  if (!source.body && !source.on_disk) {
    add_own(std::string(source.inline_body.substr(range.begin, range.end - range.begin)), content_,
            record_);
    return;
  }
  if (!content_.has_body()) {
    // A complete body is entered at the range; one that grows is read from its beginning.
    const bool complete = source.body->state() == store::BodyState::kComplete;
    open_body(source, complete ? range.begin : 0);
  }
  content_.add_range(range.begin, range.end);
}

// From here on the transfer may let go what this reader has passed.
void Exchange::open_body(const ResponseSource& source, std::uint64_t start) {
  const bool opened = content_.set_body(source.body, start);
  ENCORE_CHECK(opened, "a body is kept until its readers have opened it");
  if (transfer_ != nullptr) transfer_->mark_opened(*this);
}

void Exchange::respond_published() {
  go(Step::kRespond);
  PublishedReply reply = answer_published(services_.published, *request_, services_.loop.wall_now(),
                                          services_.loop.http_date());
  record_.outcome = Outcome::kPublished;
  record_.status = reply.status;
  http::append_cache_status(cache_status_, reply.head);
  ClientStream::Response response;
  response.head = std::move(reply.head);
  if (!reply.body.empty()) {
    response.framing = ClientStream::Framing::kLength;
    add_own(std::move(reply.body), content_, record_);
  }
  // What is left of the request's content would be taken for the next request.
  if (!upload_.is_done()) response.further = ClientStream::Further::kNone;
  add_log_fields(*request_, response.head, response_fields_);
  client_.begin(std::move(response), content_);
  pump();
}

// A redirection or a static answer.
void Exchange::respond_by_rule(const LocalAnswer& answer) {
  go(Step::kRespond);
  record_.outcome = answer.outcome;
  record_.status = answer.status;
  cache_status_.detail = answer.detail;
  record_.detail = answer.detail;
  RuleReply reply = make_rule_reply(*answer.content, *request_, services_.loop.http_date());
  request_->rule->response_edits().apply(reply.head);
  http::append_cache_status(cache_status_, reply.head);
  ClientStream::Response response;
  response.head = std::move(reply.head);
  if (!reply.body.empty() && request_->head.method != http::Method::kHead) {
    response.framing = ClientStream::Framing::kLength;
    add_own(std::move(reply.body), content_, record_);
  }
  // What is left of the request's content would be taken for the next request.
  if (!upload_.is_done()) response.further = ClientStream::Further::kNone;
  add_log_fields(*request_, response.head, response_fields_);
  client_.begin(std::move(response), content_);
  pump();
}

// What came of it is told as a failure is: an answer of our own, by its status.
void Exchange::purge() {
  auto wish = read_purge_wish(*request_);
  if (!wish) {
    // The reason, and what there is to say about it.
    const std::string_view said = wish.error().message;
    const std::string_view reason = said.substr(0, said.find(": "));
    const std::string_view more = said.substr(reason.size());
    respond_failure(400, Outcome::kBadRequest, reason,
                    more.empty() ? more : more.substr(std::string_view(": ").size()));
    return;
  }
  go(Step::kAsk);
  go(Step::kWait);
  transfer_ = std::make_shared<Transfer>(services_.home, request_->hash, nullptr);
  role_ = Role::kAsked;
  transfer_->add_first_reader(*this);
  if (services_.purger != nullptr) {
    services_.purger->purge(transfer_, std::move(*wish));
    return;
  }
  leave_transfer();
  respond_failure(503, Outcome::kInternal, "no-purges");
}

void Exchange::respond_failure(int status, Outcome outcome, std::string_view detail,
                               std::string_view why) {
  go(Step::kRespond);
  record_.outcome = outcome;
  record_.status = status;
  failure_detail_ = detail;
  record_.detail = failure_detail_;
  const std::string& kept = failure_detail_;
  cache_status_.detail = http::is_token(kept) ? std::string_view(kept) : std::string_view();
  http::OwnReply reply = http::make_own_reply(
      status,
      "encore: " + kept +
          named_keys(request_->is_forward() ? config::Mode::kForward : config::Mode::kReverse,
                     kept) +
          (why.empty() ? std::string() : ": " + std::string(why)),
      services_.loop.http_date(), cache_status_,
      outcome == Outcome::kPurge ? nullptr : request_->runtime->error_pages.find(status));
  cache_status_.detail = {};
  ClientStream::Response response;
  response.head = std::move(reply.head);
  if (request_->head.method != http::Method::kHead) {
    response.framing = ClientStream::Framing::kLength;
    add_own(std::move(reply.body), content_, record_);
  }
  // What is left of the request's content would be taken for the next request; and our own replies
  // do not tell a client of HTTP/1.0 that it may go on.
  if (!upload_.is_done() || request_->head.version == http::Version::kHttp10) {
    response.further = ClientStream::Further::kNone;
  }
  add_log_fields(*request_, response.head, response_fields_);
  client_.begin(std::move(response), content_);
  pump();
}

void Exchange::on_writable() {
  const PanicNote note(doing_);
  if (rest_.has_begun()) return;  // all of the response is sent
  if (is_at(Step::kRespond)) {
    pump();
  } else {
    pump_interim();
  }
}

void Exchange::on_interim(std::string_view head) {
  const PanicNote note(doing_);
  if (!is_at(Step::kWait)) return;
  std::string edited;
  if (request_->rule != nullptr && !request_->rule->response_edits().only_adds()) {
    edited = without_fields(head, request_->rule->response_edits());
    head = edited;
  }
  client_.send_interim(head);
  pump_interim();
}

void Exchange::pump_interim() {
  if (client_.pump() != ClientStream::Status::kDead) return;
  record_.outcome = Outcome::kClientAborted;
  record_.detail = "reset";
  finish(ClientStream::End::kReset);
}

void Exchange::pump() {
  coding_.produce(content_.position());
  const ClientStream::Status status = client_.pump();
  if (record_.first_byte.count() < 0 && services_.log.is_logging() && client_.sent_bytes() != 0) {
    record_.first_byte = monotonic_now() - record_.started;
  }
  // How far into the body as it came.
  const CodedBody* const coded = coding_.body();
  const std::uint64_t position =
      coded == nullptr ? content_.position() : coded->source().position();
  if (disk_body_ != nullptr) {
    disk_body_->on_reader({.position = position, .may_read_ahead = !client_.is_over_share()});
  } else if (transfer_ != nullptr) {
    set_over_share(client_.is_over_share());
    transfer_->advance(*this, position);
  }
  const bool is_blocked = status == ClientStream::Status::kBlocked;
  const Question question = take_question();
  if (question != Question::kNone) {
    set_busy(is_blocked ? coded != nullptr : !client_.has_taken_all());
  }
  if (question != Question::kNone && is_blocked &&
      standstill_.look(services_.loop.now(), client_.taken_bytes(),
                       [this] { return client_.round_trip(); }) &&
      question == Question::kLeave &&
      (left_behind_.can_go_on() || !standstill_.may_move_on(services_.loop.now()))) {
    left_behind_.leave();
    return;
  }
  if (status == ClientStream::Status::kMore) {
    next_turn_.wait_for_share();
  } else if (coded != nullptr && coded->wants_turn() && (!is_blocked || coded->keeps_all())) {
    next_turn_.schedule();
  }
  switch (status) {
    case ClientStream::Status::kDone:
      if (rest_.goes_on(transfer_.get(), upload_, services_.loop.now())) return;
      finish(ClientStream::End::kDone);
      return;
    case ClientStream::Status::kWaiting:
      left_behind_.look();
      return;
    case ClientStream::Status::kBlocked:
    case ClientStream::Status::kMore:
      return;
    case ClientStream::Status::kBroken:
      if (coded == nullptr && left_behind_.lose_disk()) return;
      record_.outcome = broken_outcome(coded, disk_body_.get(), transfer_.get());
      record_.detail = {};
      finish(ClientStream::End::kBroken);
      return;
    case ClientStream::Status::kDead:
      record_.outcome = Outcome::kClientAborted;
      record_.detail = "reset";
      finish(ClientStream::End::kReset);
      return;
  }
}

}  // namespace encore::server

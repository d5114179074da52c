// The second half of an exchange: what it answers, and the sending of it.
#include <utility>

#include "base/check.h"
#include "proxy/exchange/client_cache_control.h"
#include "proxy/exchange/exchange.h"
#include "proxy/http/head_text.h"
#include "proxy/request/request_ids.h"

namespace encore::server {
namespace {

// Why content ended before it was whole. Each may be null: it has no part in it.
Outcome broken_outcome(const CodedBody* coded, const DiskBody* disk, const Transfer* transfer) {
  if (coded != nullptr && coded->ran_out()) return Outcome::kNoMemory;
  if (disk != nullptr) return Outcome::kCacheAborted;
  const bool out_of_memory = transfer != nullptr && transfer->is_out_of_memory();
  return out_of_memory ? Outcome::kNoMemory : Outcome::kOriginAborted;
}

// Adds the request's id, if clients receive it; and saves the fields of the head that the log
// wants.
void add_log_fields(const RequestContext& request, std::string& head, std::string& logged) {
  const Runtime& runtime = *request.runtime;
  if (runtime.config.log.request_id == config::RequestIds::kRespond) [[unlikely]] {
    http::append_field(kRequestIdField, request.request_id, head);
  }
  if (runtime.logs_response_fields) [[unlikely]] {
    logged = head;
  }
}

// `parts` are borrowed as long as the object is held.
ResponseSource stored_source(const store::Object& object, const HeadParts& parts) {
  ResponseSource source;
  source.head = parts.stored_head();
  source.meta = &parts.meta.http;
  source.length = body_length_of(object);
  if (is_on_disk_alone(object)) {
    source.on_disk = large_body_of(object);
  } else if (!object.is_inline()) {
    source.body = store::BodyRef::share(object.body());
  }
  source.inline_body = object.inline_body();
  source.stored_trailers = parts.trailers();
  source.whole = parts.meta.http.status == 200;
  source.has_age = true;
  source.is_shared = true;
  return source;
}

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

void Exchange::respond_stored(const store::ObjectRef& object, Outcome outcome,
                              const FoundPart* part) {
  record_.outcome = outcome;
  const HeadParts parts =
      unstored_ ? HeadParts{.meta = unstored_->meta, .head = unstored_->head} : head_parts(*object);
  const ObjectMeta& meta = parts.meta;
  if (outcome == Outcome::kHit ||
      (outcome == Outcome::kStale && cache_status_.forwarded == http::Forwarded::kNo)) {
    cache_status_.hit = true;
    // A request that waited for a transfer and is answered from the store was not forwarded (RFC
    // 9211 2.2).
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
  content_.reader().hold(object);
  record_.content_type = parts.content_type();
  ResponseSource source = stored_source(*object, parts);
  source.more_fields = private_lines_;
  const ResponseMoment moment = moment_of(*request_, cache_status_, services_.loop);
  if (part != nullptr) {
    respond(source, plan_stored_part(source, moment, *part->content, part->decision.range));
    return;
  }
  respond(source, coding_.plan(source, unstored_ ? nullptr : &object, moment, next_turn_));
}

void Exchange::respond(const ResponseSource& source, ResponsePlan&& plan) {
  if (source.on_disk &&
      !content_.open_disk(request_->hash, source, plan, [this] { on_transfer(); })) {
    fail({.status = 503, .outcome = Outcome::kNoMemory, .detail = "out-of-memory"});
    return;
  }
  ENCORE_CHECK(plan.content != ResponsePlan::Content::kLater, "what is sent has been decided");
  steps_.go(Step::kRespond);
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
    // Trailers may have the same fields that a rule takes out of heads.
    const bool edited = request_->rule != nullptr && !request_->rule->response_edits().only_adds();
    if (http::accepts_trailers(request_->head) && !edited) response.trailers = lines;
  }
  // A client of HTTP/1.0 may wait for the end of the connection to see that of the response.
  const bool shows_end = plan.framing != ClientStream::Framing::kOpen ||
                         request_->head.version != http::Version::kHttp10;
  if (shows_end && rest_.offer(subscription_.transfer().get(), upload_)) {
    response.further = ClientStream::Further::kBehindContent;
  }
  const bool has_content = plan.framing != ClientStream::Framing::kNone &&
                           plan.content != ResponsePlan::Content::kUnread;
  if (has_content) coding_.count();
  if (plan.content == ResponsePlan::Content::kUnread) {
    // A reader of no body must not hold back those who read one.
    subscription_.leave();
  } else {
    content_.give(source, plan, subscription_.transfer().get());
  }
  add_log_fields(*request_, response.head, response_fields_);
  client_.begin(std::move(response), content_.reader());
  pump();
}

void Exchange::respond_own(SyntheticResponse answer) {
  steps_.go(Step::kRespond);
  record_.outcome = answer.outcome;
  record_.status = answer.status;
  failure_detail_ = std::move(answer.detail);
  record_.detail = failure_detail_;
  ClientStream::Response response;
  response.head = std::move(answer.head);
  if (!answer.body.empty()) {
    response.framing = ClientStream::Framing::kLength;
    content_.add_own(std::move(answer.body));
  }
  // The rest of the request's content would be taken for the next request.
  if (!upload_.is_done() || answer.ends_connection) {
    response.further = ClientStream::Further::kNone;
  }
  add_log_fields(*request_, response.head, response_fields_);
  client_.begin(std::move(response), content_.reader());
  pump();
}

void Exchange::fail(const Failure& failure) {
  respond_own(failure_answer(failure, *request_, services_.loop.http_date(), cache_status_));
}

void Exchange::on_writable() {
  const PanicNote note(steps_.activity());
  if (!rest_.has_begun()) pump();  // else all of the response is sent
}

void Exchange::on_interim(std::string_view head) {
  const PanicNote note(steps_.activity());
  if (!steps_.is_at(Step::kWait)) return;
  std::string edited;
  if (request_->rule != nullptr && !request_->rule->response_edits().only_adds()) {
    edited = without_fields(head, request_->rule->response_edits());
    head = edited;
  }
  client_.send_interim(head);
  pump();
}

void Exchange::pump() {
  if (!steps_.is_at(Step::kRespond)) {
    // There is nothing but interim responses yet.
    if (client_.pump() != ClientStream::Status::kDead) return;
    record_.outcome = Outcome::kClientAborted;
    record_.detail = "reset";
    finish(ClientStream::End::kReset);
    return;
  }
  coding_.produce(content_.reader().position());
  const ClientStream::Status status = client_.pump();
  if (record_.first_byte.count() < 0 && services_.log.is_logging() && client_.sent_bytes() != 0) {
    record_.first_byte = monotonic_now() - record_.started;
  }
  // How far into the body as it came.
  const CodedBody* const coded = coding_.body();
  const std::uint64_t position = content_.source().position();
  if (content_.disk() != nullptr) {
    content_.disk()->on_reader({.position = position, .may_read_ahead = !client_.is_over_share()});
  } else if (subscription_.transfer() != nullptr) {
    set_over_share(client_.is_over_share());
    subscription_.transfer()->advance(*this, position);
  }
  const bool is_blocked = status == ClientStream::Status::kBlocked;
  const Question question = take_question();
  if (question != Question::kNone) {
    set_busy(is_blocked ? coded != nullptr : !client_.has_taken_all());
  }
  if (question != Question::kNone && is_blocked &&
      stall_detector_.look(services_.loop.now(), client_.taken_bytes(),
                           [this] { return client_.round_trip(); }) &&
      question == Question::kLeave &&
      (detachment_.can_go_on() || !stall_detector_.may_move_on(services_.loop.now()))) {
    detachment_.leave();
    return;
  }
  if (status == ClientStream::Status::kMore) {
    next_turn_.wait_for_share();
  } else if (coded != nullptr && coded->wants_turn() && (!is_blocked || coded->keeps_all())) {
    next_turn_.schedule();
  }
  switch (status) {
    case ClientStream::Status::kDone:
      if (rest_.goes_on(subscription_.transfer().get(), upload_, services_.loop.now())) return;
      finish(ClientStream::End::kDone);
      return;
    case ClientStream::Status::kWaiting:
      detachment_.look();
      return;
    case ClientStream::Status::kBlocked:
    case ClientStream::Status::kMore:
      return;
    case ClientStream::Status::kBroken:
      if (coded == nullptr && detachment_.lose_disk()) return;
      record_.outcome = broken_outcome(coded, content_.disk(), subscription_.transfer().get());
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

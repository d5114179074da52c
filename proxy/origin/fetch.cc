// The first part of a fetch: its connection, its request, and what is to be asked again.
#include "proxy/origin/fetch.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "proxy/http/conditional.h"
#include "proxy/observe/request_steps.h"
#include "proxy/origin/freshening.h"
#include "proxy/origin/origin_request.h"
#include "proxy/origin/parts.h"

namespace encore::server {
namespace {

using AttemptFailure = OriginLink::AttemptFailure;

RequestWriter::Body body_of(const FetchPlan& plan) {
  return plan.has_upload ? RequestWriter::Body::kExpected : RequestWriter::Body::kNone;
}

// True if content comes before a connection. A client that waits for a 100 waits for the origin's.
bool gathers(const RequestContext& request) {
  return request.runtime->config.upstream.buffer_requests_bytes != 0 &&
         !request.head.fields.has(http::FieldId::kExpect);
}

// RFC 9112 6.1: a server of HTTP/1.0 knows no chunks.
bool needs_length(const OriginServices& services, const RequestContext& request,
                  const FetchPlan& plan, const std::string& pool_key) {
  return plan.has_upload && request.framing.kind == http::BodyKind::kChunked &&
         services.old_servers.is_old({pool_key, services.identity_seed}, services.loop.now());
}

// True if an answer has taken too long to begin.
bool is_answer_overdue(const config::Config& config, Nanoseconds waited) {
  const auto over = [waited](Nanoseconds limit) { return limit.count() != 0 && waited >= limit; };
  return over(config.timeouts.origin_response) || over(config.upstream.first_byte);
}

// RFC 9110 9.2.2: what has begun to be answered, or may have had an effect, is not sent again; what
// its server has not worked on has had none, if its content is still here (docs/decisions/0477).
bool may_repeat(AttemptFailure failure, bool answered, const RequestContext& request,
                RequestWriter& writer) {
  if (answered) return false;
  if (failure == AttemptFailure::kRefused) return writer.rewind();
  return !writer.has_begun() ||
         (!writer.has_taken_body() && http::is_idempotent(request.head.method));
}

// Passes everything that comes on the open connection to the fetch.
void attend(OriginStream stream, Fetch& fetch, std::size_t head_bytes_max) {
  if (stream.http2() != nullptr) [[unlikely]] {
    stream.http2()->set_handler(&fetch);
    return;
  }
  stream.connection().set_handler(&fetch);
  // One byte more than a head may have, so that the parser sees a longer one and refuses it.
  stream.connection().keep_at_least(head_bytes_max + 1);
  if (stream.is_reading_paused()) stream.resume_reading();
}

// How content is framed on the connection; over HTTP/2 not at all.
http::BodyKind content_framing(OriginStream stream, const RequestContext& request) {
  return stream.http2() != nullptr ? http::BodyKind::kLength : request.framing.kind;
}

}  // namespace

Fetch::Fetch(OriginServices& services, std::shared_ptr<Transfer> transfer,
             std::shared_ptr<const RequestContext> request, FetchPlan plan)
    : services_(services),
      transfer_(std::move(transfer)),
      request_(std::move(request)),
      plan_(std::move(plan)),
      state_(*request_),
      begun_(services.loop.now()),
      link_(services, *request_, *this),
      writer_(body_of(plan_)),
      received_(make_reused<ReceivedResponse>()),
      body_(services, *request_, *transfer_, *this),
      readers_changed_(services.loop, [this] { look_after_readers(); }),
      gathered_(services.loop, [this] {
        const PanicNote note(state_.activity());
        if (state_ == State::kEnded) return;
        if (content_ == Content::kGathered) return transfer_->publish_upload_ready();
        // The time that gathering took was the client's.
        begun_ = services_.loop.now();
        go_on(link_.acquire(OriginLink::Need::kNew));
      }) {}

Fetch::~Fetch() { ENCORE_CHECK(state_ == State::kEnded, "a fetch ends before it is destroyed"); }

void Fetch::start(OriginServices& services, std::shared_ptr<Transfer> transfer,
                  std::shared_ptr<const RequestContext> request, FetchPlan plan) {
  std::unique_ptr<Fetch> fetch(
      new Fetch(services, std::move(transfer), std::move(request), std::move(plan)));
  Fetch& kept = *fetch;
  services.keeper.keep(std::move(fetch));
  kept.transfer_->set_producer(&kept);
  if (kept.plan_.has_upload && gathers(*kept.request_)) {
    kept.content_ = Content::kGathered;
    kept.gathered_.schedule();
    return;
  }
  // A request that cannot be sent twice goes on a connection that is not about to be closed by its
  // origin: of a body, nothing is kept.
  const bool repeatable = !kept.plan_.has_upload && http::is_idempotent(kept.request_->head.method);
  kept.go_on(kept.link_.acquire(repeatable ? OriginLink::Need::kAny : OriginLink::Need::kNew));
}

void Fetch::go_on(OriginLink::Progress progress) {
  state_.go(State::kConnecting);
  switch (progress) {
    case OriginLink::Progress::kOpen:
      on_link_open();
      return;
    case OriginLink::Progress::kPending:
      if (link_.waits_for_share()) transfer_->set_motion(Transfer::Motion::kHeldBack);
      return;
    case OriginLink::Progress::kNone:
      fail_later(link_.busy_failure());
      return;
  }
}

// The same server is asked once more, for something else.
void Fetch::ask_again() {
  body_.detach();
  go_on(link_.reconnect());
}

bool Fetch::try_again(AttemptFailure failure, std::string_view why) {
  if (state_ != State::kSending && state_ != State::kHead) return false;
  const bool repeatable = may_repeat(failure, answered_, *request_, writer_);
  const auto progress = link_.try_again(
      {.failure = failure, .why = why, .answered = answered_, .repeatable = repeatable});
  if (!progress) return false;
  go_on(*progress);
  return true;
}

void Fetch::on_link_open() {
  const PanicNote note(state_.activity());
  ENCORE_CHECK(state_ == State::kConnecting, "a connection comes to who waits for one");
  const OriginStream stream = link_.stream();
  transfer_->set_motion(Transfer::Motion::kMoving);
  answered_ = false;
  visit_.connect = link_.connect_time();
  visit_.version = stream.http2() != nullptr ? "HTTP/2" : "HTTP/1.1";
  if (request_->runtime->follows_requests) [[unlikely]] {
    log_step(request_->request_id, {"fetch: ", visit_.connect.count() < 0 ? "a kept" : "a new",
                                    " connection to ", stream.peer().to_string()});
  }
  if (services_.worker.logs_requests()) {
    visit_.address = stream.peer().to_string();
    if (link_.server() != nullptr) visit_.server = link_.server()->url;
  }
  attend(stream, *this, request_->runtime->head_limits.head_bytes_max);
  send_request();
}

void Fetch::send_request() {
  OriginRequestOptions options;
  if (needs_length(services_, *request_, plan_, link_.pool_key())) {
    if (!writer_.has_gathered_all()) {
      fail_later({.status = 411,
                  .outcome = Outcome::kBadRequest,
                  .detail = "length-required",
                  .why = "The server speaks HTTP/1.0: send a Content-Length."});
      return;
    }
    options.length = writer_.gathered_bytes();
  }
  options.to_proxy = link_.asks_proxy();
  options.whole = plan_.whole;
  // RFC 9110 10.1.1: it is ignored in HTTP/1.0, and without content there is nothing to wait with.
  options.drop_expect = !plan_.has_upload || request_->head.version == http::Version::kHttp10;
  std::string lines;
  // Behind a redirection the validators are those of another resource.
  if (plan_.stored && plan_.redirects == 0) {
    const http::Validators stored =
        http::stored_validators(meta_of(*plan_.stored).http, stored_head_of(*plan_.stored));
    http::append_validation_fields(
        http::sufficient(stored, proof_wanted(*request_, *plan_.stored, plan_.stored_fresh_until)),
        lines);
    if (!lines.empty()) services_.stats.revalidations.add();
    asked_condition_ = !lines.empty();
  } else {
    if (plan_.completes) lines = completion_fields(*plan_.completes);
    asked_condition_ =
        !plan_.whole && request_->head.fields.has_any(
                            {http::FieldId::kIfNoneMatch, http::FieldId::kIfModifiedSince});
  }
  options.validation_fields = lines;
  build_origin_request(*request_, link_.server(), options, writer_.begin());
  writer_.frame(options.length ? http::BodyKind::kLength
                               : content_framing(link_.stream(), *request_));
  progress_ = {};
  state_.go(State::kSending);
  since_ = services_.loop.now();
  received_->request_time = since_;
  // Counted before the request leaves: an invalidation from here on overtakes its response.
  received_->invalidations_seen =
      plan_.invalidations_seen.value_or(services_.inflight.invalidations().count());
  services_.stats.origin_requests.add();
  link_.tally().add(&ServerCounts::sent);
  flush_what_waited();
}

void Fetch::give_way() { fail({503, Outcome::kNoMemory, "out-of-memory"}); }

// Writes what is left of the request. Whether the connection has taken it all.
bool Fetch::flush() {
  if (writer_.is_broken()) return false;
  const net::WriteResult result = writer_.flush(link_.stream());
  services_.stats.bytes_to_origins.add(result.bytes);
  link_.tally().add(&ServerCounts::sent_bytes, result.bytes);
  if (result.status == net::WriteStatus::kError) {
    if (try_again(AttemptFailure::kClosed, "resets the connection")) return false;
    // It may have answered before it closed, as with 413 to a body that it does not want.
    if (link_.stream().read_rest()) {
      since_ = services_.loop.now();
    } else {
      fail_later({502, Outcome::kOriginAborted, "origin-closed"});
    }
    return false;
  }
  if (result.bytes != 0) since_ = services_.loop.now();
  if (result.status == net::WriteStatus::kBlocked) return false;
  if (state_ == State::kSending) state_.go(State::kHead);
  return true;
}

// The origin was waited for. If it has taken the rest of the request now, it is the client's turn.
void Fetch::flush_what_waited() {
  if (!flush()) return;
  if (state_ == State::kRest && writer_.is_complete()) {
    release_connection(true);
    end();
    return;
  }
  if (writer_.waits_for_client()) transfer_->publish_upload_ready();
}

bool Fetch::accepts_upload() const {
  if (content_ == Content::kGathered) return state_ != State::kEnded;
  return state_ != State::kConnecting && state_ != State::kEnded && link_.is_open() &&
         writer_.accepts_upload();
}

bool Fetch::takes_rest() const {
  return writer_.outlives_response() && (state_ == State::kBody || state_ == State::kRest);
}

void Fetch::upload(std::string_view content, bool last, std::string_view trailers) {
  const PanicNote note(state_.activity());
  ENCORE_CHECK(accepts_upload(), "content comes when it is accepted");
  if (content_ == Content::kGathered) {
    writer_.gather(content, last, trailers);
    const std::uint64_t enough = request_->runtime->config.upstream.buffer_requests_bytes;
    if (!last && writer_.gathered_bytes() < enough) return;
    content_ = Content::kGoesOn;
    gathered_.schedule();
    return;
  }
  writer_.upload(content, last, trailers, content_framing(link_.stream(), *request_));
  since_ = services_.loop.now();
  // A response may begin early; the origin is not idle while it waits for the rest of the content.
  if (state_ == State::kBody) body_.touch();
  if (!flush() || state_ != State::kRest || !writer_.is_complete()) return;
  release_connection(true);
  end();
}

void Fetch::on_writable(net::Stream&) {
  const PanicNote note(state_.activity());
  if (state_ != State::kEnded) flush_what_waited();
}

// The pool gets it where it is in step (`reusable`: the response has ended as it should). An origin
// may answer before it has read the request: what it has not got of it would come in front of the
// next one.
void Fetch::release_connection(bool reusable) {
  body_.detach();
  link_.release(reusable && writer_.is_complete() ? OriginLink::Fate::kKeep
                                                  : OriginLink::Fate::kDrop);
}

void Fetch::check_timeouts(MonotonicTime now) {
  const PanicNote note(state_.activity());
  const config::Timeouts& timeouts = request_->runtime->config.timeouts;
  const Nanoseconds total = request_->runtime->config.upstream.total;
  // While content is gathered no server is involved: the client's limits hold.
  if (total.count() != 0 && state_ != State::kEnded && content_ == Content::kGoesOn &&
      now - begun_ >= total) {
    if (state_ == State::kSending || state_ == State::kHead) {
      link_.tally().add_failure(ServerFailure::kSilent);
    }
    fail({504, Outcome::kOriginTimeout, "total-timeout"});
    return;
  }
  switch (static_cast<State>(state_)) {
    case State::kConnecting:
      link_.check_timeouts(now);
      return;
    case State::kSending:
    case State::kHead:
      if (name_check_ != nullptr) return name_check_->check_time(now);
      // While the client still sends its body, the wait is for the client.
      if (writer_.waits_for_client()) return;
      if (is_answer_overdue(request_->runtime->config, now - since_) &&
          !try_again(AttemptFailure::kSilent, "does not respond")) {
        fail({504, Outcome::kOriginTimeout, "response-timeout"});
      }
      return;
    case State::kBody:
      switch (body_.check(now, timeouts.origin_idle)) {
        case ResponseBody::Overdue::kNothing:
          return;
        case ResponseBody::Overdue::kMemory:
          give_way();
          return;
        case ResponseBody::Overdue::kOrigin:
          fail({504, Outcome::kOriginTimeout, "idle-timeout"});
          return;
      }
      return;
    case State::kRest:
      // Pauses of the client are watched at its connection.
      if (!writer_.waits_for_client() && timeouts.origin_idle.count() != 0 &&
          now - since_ >= timeouts.origin_idle) {
        fail({504, Outcome::kOriginTimeout, "idle-timeout"});
      }
      return;
    case State::kEnded:
      return;
  }
}

}  // namespace encore::server

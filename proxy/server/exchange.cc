#include "proxy/server/exchange.h"

#include <algorithm>

#include "base/check.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/interim.h"
#include "proxy/http/reuse.h"
#include "proxy/http/via.h"
#include "proxy/server/fetch.h"
#include "proxy/server/reply_text.h"
#include "proxy/server/response.h"

namespace encore::server {

using After = ClientConnection::After;

namespace {

// Transfers of others that a request waits for one after the other, where each turns out to bring
// another variant: the first may have been begun when nothing was known of how they differ, the
// others by whoever learnt it from the one before.
constexpr std::uint32_t kJoinsMax = 3;

ExpectedVariant variant_of(const store::Object& object) {
  return {.names = std::string(names_of(object)), .key = std::string(variant_key_of(object))};
}

}  // namespace

Exchange::Exchange(ClientConnection& connection, std::shared_ptr<const RequestContext> request,
                   CacheView found)
    : TransferReader(connection.worker()),
      connection_(connection),
      request_(std::move(request)),
      found_(std::move(found)),
      next_turn_(connection.worker().loop(), [this] { on_transfer(); }),
      variants_(request_->head.fields, request_->vary()) {
  record_.started = now();
  keep_alive_ = http::keep_alive(request_->head);
  const http::Framing& framing = request_->framing;
  body_done_ = framing.kind == http::BodyKind::kNone ||
               (framing.kind == http::BodyKind::kLength && framing.length == 0);
  body_left_ = framing.length;
  const config::Limits& limits = request_->runtime->config.limits;
  decoder_ = http::ChunkedDecoder({.extension_bytes_max = limits.chunk_extension_bytes,
                                   .trailer_bytes_max = limits.trailers_bytes});
  body_activity_ = now();
}

Exchange::~Exchange() { leave_transfer(); }

void Exchange::leave_transfer() {
  if (transfer_ == nullptr) return;
  const std::shared_ptr<Transfer> left = std::move(transfer_);
  left->leave(*this);
}

void Exchange::start() {
  if (answer_locally()) return;
  // Preconditions are the origin's to evaluate (RFC 9111 4.3.2).
  const bool precondition =
      request_->head.fields.has_any({http::FieldId::kIfMatch, http::FieldId::kIfUnmodifiedSince});
  const bool readable = is_get() || is_head();
  const bool cacheable = readable && !request_->key.empty() && body_done_ && !precondition;
  if (!cacheable && readable && request_->directives.only_if_cached) {
    respond_failure(504, Outcome::kOnlyIfCached, "only-if-cached");
    return;
  }
  if (!cacheable) {
    cache_status_.forwarded = http::Forwarded::kMethod;
    if (readable) {
      cache_status_.forwarded = precondition ? http::Forwarded::kRequest : http::Forwarded::kBypass;
    }
    start_fetch({});
    return;
  }
  if (is_head() && !found_.object) {
    found_ = worker().lookup(*request_);
  }
  if (found_.object) {
    decide_stored();
  } else {
    fetch();
  }
}

// What needs neither cache nor origin.
bool Exchange::answer_locally() {
  const http::RequestHead& head = request_->head;
  if (http::via_has(head.fields, request_->runtime->pseudonym)) {
    respond_failure(508, Outcome::kLoop, "loop");
    return true;
  }
  if (http::expectation(head) == http::Expectation::kUnknown) {
    respond_failure(417, Outcome::kBadRequest, "unknown-expectation");
    return true;
  }
  const config::Limits& limits = request_->runtime->config.limits;
  if (limits.request_body_bytes != 0 && request_->framing.kind == http::BodyKind::kLength &&
      request_->framing.length > limits.request_body_bytes) {
    respond_failure(413, Outcome::kBadRequest, "request-body-too-large");
    return true;
  }
  // RFC 9110 9.3.8: TRACE would show what proxies in front of us added; we do not forward it.
  if (head.method == http::Method::kTrace) {
    respond_failure(405, Outcome::kMethod, "trace");
    return true;
  }
  // Without the other protocol it would be another request (RFC 9110 7.8).
  if (http::asked_upgrade(head) == http::Upgrade::kOther) {
    respond_failure(501, Outcome::kMethod, "upgrade");
    return true;
  }
  std::uint64_t hops = 1;
  if (head.method == http::Method::kOptions &&
      http::parse_decimal(head.fields.value(http::FieldId::kMaxForwards), hops) && hops == 0) {
    record_.outcome = Outcome::kMethod;
    std::string reply;
    append_status_line(204, "No Content", reply);
    reply += "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n";
    record_.status = 204;
    cache_status_.detail = "max-forwards";
    add_tail({}, false, reply);
    sender_.add_text(reply);
    responding_ = true;
    pump();
    return true;
  }
  return false;
}

void Exchange::decide_stored() {
  if (meta_of(*found_.object).http.is(http::StoredMeta::kPartial)) {
    decide_part();
    return;
  }
  const http::StoredMeta meta = meta_until(*found_.object, found_.fresh_until);
  const auto decision = http::decide_reuse(meta, request_->directives, now(), request_->reuse());
  switch (decision.action) {
    case http::Reuse::kFresh:
      respond_stored(found_.object, Outcome::kHit);
      return;
    case http::Reuse::kStaleAllowed:
      respond_stored(found_.object, Outcome::kStale);
      return;
    case http::Reuse::kStaleWhileRevalidate:
      validate(true);
      respond_stored(found_.object, Outcome::kStale);
      return;
    case http::Reuse::kGatewayTimeout:
      respond_failure(504, Outcome::kOnlyIfCached, "only-if-cached");
      return;
    case http::Reuse::kMustValidate:
      cache_status_.forwarded = decision.cause == http::ForwardCause::kRequest
                                    ? http::Forwarded::kRequest
                                    : http::Forwarded::kStale;
      validate(false);
      return;
  }
}

void Exchange::validate(bool in_background) {
  if (!in_background) {
    start_fetch({.whole = true, .validate = true, .share = true});
    return;
  }
  // One at a time: whoever finds a validation under way leaves it to that.
  auto transfer = make_recycled<Transfer>(worker(), request_->hash, shared_key());
  transfer->settings = request_->runtime->number;
  transfer->expect(variant_of(*found_.object));
  if (!is_get()) transfer->stop_joining();  // a response to HEAD has nothing for others
  if (!worker().shared().inflight.enter_if_absent(transfer)) return;
  worker().stats().background_fetches.add();
  FetchPlan plan;
  plan.whole = true;
  plan.in_table = is_get();
  plan.background = true;
  plan.stored = found_.object;
  plan.stored_fresh_until = found_.fresh_until;
  Fetch::start(worker(), std::move(transfer), request_, std::move(plan));
}

void Exchange::fetch() {
  if (request_->directives.only_if_cached) {
    cache_status_.forwarded = http::Forwarded::kNo;
    respond_failure(504, Outcome::kOnlyIfCached, "only-if-cached");
    return;
  }
  if (cache_status_.forwarded == http::Forwarded::kNo) {
    cache_status_.forwarded =
        found_.any_resident ? http::Forwarded::kVaryMiss : http::Forwarded::kUriMiss;
  }
  const http::Fields& fields = request_->head.fields;
  const bool conditional =
      fields.has_any({http::FieldId::kRange, http::FieldId::kIfRange, http::FieldId::kIfNoneMatch,
                      http::FieldId::kIfModifiedSince, http::FieldId::kIfMatch,
                      http::FieldId::kIfUnmodifiedSince});
  const cache::Key key{request_->hash, request_->key};
  // The whole object is asked for where it will be stored; otherwise the request goes as it is.
  const bool uncacheable = worker().shared().inflight.unshared(request_->hash, now()) ==
                           Inflight::Unshared::kUncacheable;
  const bool shaped = is_get() && conditional && !request_->directives.no_store &&
                      !(uncacheable && fields.has(http::FieldId::kRange)) &&
                      worker().shared().kernel->would_admit(key, now());
  start_fetch({.whole = is_get() && (!conditional || shaped), .share = true});
}

// Whether others may wait for what this request brings.
bool Exchange::may_lead() const {
  return is_get() && !alone_ && request_->runtime->config.cache.collapse &&
         !request_->directives.no_store &&
         !request_->head.fields.has(http::FieldId::kAuthorization) &&
         worker().shared().inflight.unshared(request_->hash, now()) == Inflight::Unshared::kNo;
}

// Whether this request may wait for what another one brings: not where that, as fresh as it can be,
// would be no answer to it. REQUIRES: may_lead().
bool Exchange::may_join() const {
  const http::RequestDirectives& directives = request_->directives;
  if (joins_ == kJoinsMax) return false;
  if (request_->reuse().ignore_client_reload) return true;
  return !directives.no_cache && directives.max_age.value_or(1) != 0;
}

// Joins a transfer, or enters `fresh` as one that others may join.
bool Exchange::join(const std::shared_ptr<Transfer>& fresh, bool enter) {
  auto claim = worker().shared().inflight.join_or_enter({.hash = request_->hash,
                                                         .key = request_->key,
                                                         .variants = variants_,
                                                         .reader = *this,
                                                         .settings = request_->runtime->number},
                                                        enter ? fresh : nullptr);
  if (claim.joined == JoinOutcome::kNo) return false;
  transfer_ = std::move(claim.transfer);
  first_reader_ = false;
  collapsed_ = true;
  joined_late_ = claim.joined == JoinOutcome::kBehindHead;
  ++joins_;
  joined_at_ = now();
  // What it has already is looked at from the loop, not from within what asked for it.
  if (transfer_->phase() != TransferPhase::kWaiting) next_turn_.schedule();
  return true;
}

void Exchange::start_fetch(const Ask& ask) {
  const bool leads = ask.share && may_lead();
  auto fresh = make_recycled<Transfer>(worker(), request_->hash, leads ? shared_key() : nullptr);
  fresh->settings = request_->runtime->number;
  if (ask.validate) fresh->expect(variant_of(*found_.object));
  if (leads) {
    if (may_join()) {
      if (join(fresh, ask.whole)) return;
    } else if (ask.whole) {
      worker().shared().inflight.enter(fresh);
    }
  }
  transfer_ = fresh;
  first_reader_ = true;
  transfer_->add_first_reader(*this);
  FetchPlan plan;
  plan.whole = ask.whole;
  plan.in_table = leads && ask.whole;
  plan.any_resident = found_.any_resident;
  if (ask.validate) {
    plan.stored = found_.object;
    plan.stored_fresh_until = found_.fresh_until;
  }
  plan.has_upload = !body_done_;
  if (ask.whole && !ask.validate && found_.object && http::range_value(request_->head).empty() &&
      may_complete(*found_.object, request_->runtime->config.cache.range_fetch_max_bytes)) {
    plan.completes = found_.object;
  }
  Fetch::start(worker(), std::move(fresh), request_, std::move(plan));
}

// The transfer of another was no use to us: what is stored is looked at again, and the origin
// asked.
void Exchange::ask_again() {
  leave_transfer();
  response_.reset();
  collapsed_ = false;
  joined_late_ = false;
  found_ = worker().lookup(*request_);
  if (found_.object) {
    decide_stored();
  } else {
    fetch();
  }
}

void Exchange::on_transfer() {
  if (finished_) return;
  if (is_cut()) {
    cut();
    return;
  }
  if (responding_) {
    pump();
    return;
  }
  if (transfer_ == nullptr) return;
  const TransferPhase phase = transfer_->phase();
  worker().catch_up();
  switch (phase) {
    case TransferPhase::kWaiting:
      return;
    case TransferPhase::kSharing:
      respond_shared();
      return;
    case TransferPhase::kValidated:
      respond_validated();
      return;
    case TransferPhase::kFailed: {
      const TransferFailure failure = transfer_->failure();
      if (!first_reader_ && failure.of_the_client) {
        alone_ = true;
        ask_again();
        return;
      }
      leave_transfer();
      respond_failure(failure.status, failure.outcome, failure.detail);
      return;
    }
  }
}

// Whether it comes from where this client may not go.
bool Exchange::is_barred(const http::StoredMeta& meta) const {
  return meta.is(http::StoredMeta::kPrivateOrigin) &&
         !request_->runtime->destinations.may_reach_private(request_->client);
}

// Whether what another request's validation came to answers this one.
bool Exchange::may_take(const Validated& validated) {
  const store::Object& object = *validated.object;
  if (variants_.make(names_of(object)) != variant_key_of(object)) return false;
  const bool looked_up = &object == found_.object.get();
  const http::StoredMeta meta =
      looked_up ? meta_until(object, found_.fresh_until) : meta_of(object).http;
  // It would ask the same origin, and hear the same.
  if (validated.stale && !is_barred(meta)) {
    const auto failure = validated.status == 0 ? http::OriginFailure::kUnreachable
                                               : http::OriginFailure::kErrorStatus;
    return http::may_serve_stale(meta, request_->directives, now(), failure,
                                 request_->runtime->stale_options);
  }
  alone_ = !validated.shareable || is_barred(meta) ||
           !http::may_share(meta, request_->directives, now(), request_->reuse());
  return !alone_;
}

// The stored response was confirmed, or may be served although it could not be.
void Exchange::respond_validated() {
  const Validated& validated = transfer_->validated();
  if (!first_reader_ && !may_take(validated)) {
    ask_again();
    return;
  }
  const bool stale = validated.stale;
  cache_status_.forward_status = stale ? 0 : 304;
  if (stale && validated.status != 0) {
    cache_status_.forward_status = static_cast<unsigned>(validated.status);
  }
  cache_status_.collapsed = collapsed_;
  if (first_reader_) private_lines_ = validated.private_lines;
  const store::ObjectRef object = validated.object;
  leave_transfer();
  respond_stored(object, stale ? Outcome::kStale : Outcome::kRevalidated);
}

// Each waiter that joined behind the head counts as a request of its own.
void Exchange::count_late_join() {
  if (transfer_->response().reason != http::StoreReason::kOk) return;
  const cache::Key key{request_->hash, request_->key};
  const auto reason =
      worker().shared().kernel->admit(key,
                                      {.variant = transfer_->response().variant,
                                       .requests = 1,
                                       .size_bytes = transfer_->response().size_for_admission()},
                                      now());
  if (cache::is_stored(reason)) transfer_->want_store();
}

// Whether another request's response answers this one: as the store would give it, now and without
// asking. Where it would not, waiting for a further one makes no sense either; where it is merely
// another variant, it does.
bool Exchange::may_take(const SharedResponse& response) {
  alone_ = !response.shareable || is_barred(response.meta) ||
           !http::may_share(response.meta, request_->directives, now(), request_->reuse());
  return !alone_ && variants_.make(response.names) == response.variant_key;
}

void Exchange::respond_shared() {
  response_ = transfer_->response_pointer();
  if (!first_reader_) {
    if (!may_take(*response_)) {
      ask_again();
      return;
    }
    if (joined_late_) count_late_join();
  }
  record_.outcome = collapsed_ ? Outcome::kCollapsed : response_->outcome;
  record_.origin = response_->origin;
  record_.content_type = response_->content_type;
  if (collapsed_) {
    cache_status_.collapsed = true;
  } else {
    if (response_->reason == http::StoreReason::kOk) cache_status_.stored = response_->stored;
    cache_status_.detail = to_string(response_->outcome);
    if (response_->outcome == Outcome::kUncacheable || response_->outcome == Outcome::kBypass) {
      cache_status_.detail = http::to_string(response_->reason);
    }
    if (response_->outcome == Outcome::kMethod) cache_status_.detail = {};
  }
  Source source;
  source.head = std::string_view(response_->head).substr(0, response_->common_bytes);
  if (first_reader_) {
    source.more_fields = std::string_view(response_->head).substr(response_->common_bytes);
  } else {
    source.has_age = true;
  }
  source.meta = &response_->meta;
  source.length = response_->length;
  source.body = transfer_->body();
  source.whole = response_->whole;
  source.trailers = &response_->trailers;
  send(source);
}

Exchange::Source Exchange::source_of(const store::ObjectRef& object, Outcome outcome) {
  record_.outcome = outcome;
  const ObjectMeta& meta = meta_of(*object);
  if (outcome == Outcome::kHit ||
      (outcome == Outcome::kStale && cache_status_.forwarded == http::Forwarded::kNo)) {
    cache_status_.hit = true;
    // Who waited for a transfer and is answered from the store was not forwarded (RFC 9211 2.2).
    cache_status_.forwarded = http::Forwarded::kNo;
  }
  const bool looked_up = object.get() == found_.object.get();
  cache_status_.ttl =
      http::remaining_ttl(looked_up ? meta_until(*object, found_.fresh_until) : meta.http, now());
  if (outcome == Outcome::kStale) cache_status_.detail = "stale";
  if (outcome == Outcome::kRevalidated) cache_status_.detail = "revalidated";
  sender_.hold(object);
  record_.content_type = content_type_of(*object);
  Source source;
  source.head = stored_head_of(*object);
  source.more_fields = private_lines_;
  source.meta = &meta.http;
  source.length = object->body_size();
  if (!object->is_inline()) source.body = store::BodyRef::share(object->body());
  source.inline_body = object->inline_body();
  source.stored_trailers = trailers_of(*object);
  source.whole = meta.http.status == 200;
  source.has_age = true;
  return source;
}

void Exchange::respond_stored(const store::ObjectRef& object, Outcome outcome) {
  send(source_of(object, outcome));
}

void Exchange::respond_failure(int status, Outcome outcome, std::string_view detail) {
  record_.outcome = outcome;
  record_.status = status;
  responding_ = true;
  // Our own replies do not tell a client of HTTP/1.0 that it may go on.
  if (!body_done_ || request_->head.version == http::Version::kHttp10) keep_alive_ = false;
  const std::string kept(detail);
  cache_status_.detail = http::is_token(kept) ? std::string_view(kept) : std::string_view();
  const bool keep = after_response() == After::kNext;
  sender_.add_text(make_error_reply(status, "encore: " + kept, worker().loop().http_date(), keep,
                                    !is_head(), cache_status_));
  pump();
}

}  // namespace encore::server

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

Exchange::Exchange(ClientConnection& connection, std::shared_ptr<const RequestContext> request,
                   CacheView found)
    : TransferReader(connection.worker()),
      connection_(connection),
      request_(std::move(request)),
      found_(std::move(found)),
      more_(connection.worker().loop(), [this] { pump(); }) {
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
    start_fetch(false, false, false);
    return;
  }
  if (is_head() && !found_.object) {
    found_ =
        worker().lookup(request_->key, request_->hash, request_->head.fields, request_->vary());
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
    start_fetch(true, true, is_get());
    return;
  }
  // One at a time: whoever finds a validation under way leaves it to that.
  auto transfer = make_recycled<Transfer>(worker(), request_->hash, shared_key());
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
  const bool uncacheable = worker().shared().inflight.is_uncacheable(request_->hash, now());
  const bool shaped = is_get() && conditional && !request_->directives.no_store &&
                      !(uncacheable && fields.has(http::FieldId::kRange)) &&
                      worker().shared().kernel->would_admit(key, now());
  const bool whole = is_get() && (!conditional || shaped);
  const bool joinable = is_get() && !alone_ && request_->runtime->config.cache.collapse &&
                        !request_->directives.no_store &&
                        !fields.has(http::FieldId::kAuthorization) && !uncacheable;
  start_fetch(whole, false, joinable);
}

// `joinable`: an existing transfer may be joined, and this one by others if it is whole.
void Exchange::start_fetch(bool whole, bool validate, bool joinable) {
  auto fresh = make_recycled<Transfer>(worker(), request_->hash, joinable ? shared_key() : nullptr);
  if (joinable) {
    Inflight& inflight = worker().shared().inflight;
    auto claim = whole ? inflight.join_or_enter(request_->hash, request_->key, *this, fresh)
                       : inflight.join(request_->hash, request_->key, *this);
    if (claim.joined != JoinOutcome::kNo) {
      transfer_ = std::move(claim.transfer);
      first_reader_ = false;
      collapsed_ = true;
      joined_late_ = claim.joined == JoinOutcome::kBehindHead;
      on_transfer();
      return;
    }
    joinable = whole;
  }
  transfer_ = fresh;
  first_reader_ = true;
  transfer_->add_first_reader(*this);
  FetchPlan plan;
  plan.whole = whole;
  plan.in_table = joinable;
  plan.any_resident = found_.any_resident;
  if (validate) {
    plan.stored = found_.object;
    plan.stored_fresh_until = found_.fresh_until;
  }
  plan.has_upload = !body_done_;
  if (whole && !validate && found_.object && http::range_value(request_->head).empty() &&
      may_complete(*found_.object, request_->runtime->config.cache.range_fetch_max_bytes)) {
    plan.completes = found_.object;
  }
  Fetch::start(worker(), std::move(fresh), request_, std::move(plan));
}

// The transfer was no use to us: ask for ourselves, without waiting for anybody again.
void Exchange::go_alone() {
  leave_transfer();
  collapsed_ = false;
  joined_late_ = false;
  alone_ = true;
  found_ = worker().lookup(request_->key, request_->hash, request_->head.fields, request_->vary());
  if (found_.object) {
    decide_stored();
  } else {
    fetch();
  }
}

void Exchange::on_transfer() {
  if (finished_) return;
  if (responding_) {
    pump();
    return;
  }
  switch (transfer_->phase()) {
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
      leave_transfer();
      respond_failure(failure.status, failure.outcome, failure.detail);
      return;
    }
  }
}

// The stored response was confirmed, or may be served although it could not be.
void Exchange::respond_validated() {
  const store::ObjectRef object = transfer_->validated();
  const bool stale = transfer_->is_validated_stale();
  if (!first_reader_) {
    const std::string_view names = names_of(*object);
    std::string own;
    http::write_variant_key(names, request_->head.fields, request_->vary(), own);
    if (own != variant_key_of(*object)) {
      go_alone();
      return;
    }
  }
  cache_status_.forward_status = stale ? 0 : 304;
  if (stale && transfer_->validation_status() != 0) {
    cache_status_.forward_status = static_cast<unsigned>(transfer_->validation_status());
  }
  cache_status_.collapsed = collapsed_;
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

void Exchange::respond_shared() {
  response_ = transfer_->response_pointer();
  if (!first_reader_) {
    std::string own;
    if (response_->shareable) {
      http::write_variant_key(response_->names, request_->head.fields, request_->vary(), own);
    }
    if (!response_->shareable || own != response_->variant_key) {
      response_.reset();
      go_alone();
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
  source.head = response_->head;
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
  if (cache_status_.forwarded == http::Forwarded::kNo) {
    cache_status_.forwarded = http::Forwarded::kBypass;
  }
  const bool keep = after_response() == After::kNext;
  sender_.add_text(make_error_reply(status, "encore: " + kept, worker().loop().http_date(), keep,
                                    !is_head(), cache_status_));
  pump();
}

}  // namespace encore::server

// The middle of a fetch: the response's head, and all that is decided by it.
#include <utility>

#include "filter/hash.h"
#include "proxy/http/conditional.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/interim.h"
#include "proxy/http/invalidation.h"
#include "proxy/http/reuse.h"
#include "proxy/http/targeted.h"
#include "proxy/server/fetch.h"
#include "proxy/server/relief.h"
#include "proxy/server/worker.h"

namespace encore::server {
namespace {

Outcome outcome_of(cache::AdmitReason reason) {
  switch (reason) {
    case cache::AdmitReason::kFirstRequest:
      return Outcome::kFirstRequest;
    case cache::AdmitReason::kSecondRequest:
      return Outcome::kSecondRequest;
    case cache::AdmitReason::kResident:
    case cache::AdmitReason::kPolicyAlways:
    case cache::AdmitReason::kPolicyAdmits:
    case cache::AdmitReason::kEnoughRequests:
      return Outcome::kAdmitted;
    case cache::AdmitReason::kPolicyNever:
    case cache::AdmitReason::kPolicyRefuses:
    case cache::AdmitReason::kFewRequests:
      return Outcome::kNotAdmitted;
    case cache::AdmitReason::kTooLarge:
      return Outcome::kTooLarge;
  }
  return Outcome::kNotAdmitted;
}

// What the kernel knows a variant by.
std::uint64_t variant_of(const std::string& names, const std::string& key) {
  if (names.empty()) return 0;
  return filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{}, names + '\n' + key).lo;
}

// Whether it is for the request alone that a response may not be stored: what is stored for others
// stays as it was.
bool is_of_the_request(http::StoreReason reason) {
  return reason == http::StoreReason::kRequestNoStore ||
         reason == http::StoreReason::kAuthorization || reason == http::StoreReason::kSetCookie;
}

}  // namespace

http::Exchange Fetch::exchange_times() const {
  return {.response_wall = response_wall_,
          .response_time = response_time_,
          .request_time = request_time_};
}

// Answers how many bytes were used; 0 with the state unchanged where the head is not all there.
std::size_t Fetch::on_head(std::string_view bytes) {
  http::ParseError error;
  const auto status =
      http::parse_response(bytes, request_->runtime->head_limits, progress_, head_, error);
  if (status == http::ParseStatus::kIncomplete) return 0;
  progress_ = {};
  if (status == http::ParseStatus::kBad) {
    fail(502, Outcome::kOriginInvalid, http::to_string(error.reason));
    return bytes.size();
  }
  if (server_ != nullptr) request_->route->group().put_back(*server_);
  const std::size_t used = head_.head_size;
  if (http::is_interim(head_.status)) {
    (void)on_interim_head();
    return used;
  }
  head_bytes_ = bytes.substr(0, used);
  surplus_ = bytes.size() > used;
  response_wall_ = worker_.loop().wall_now();
  response_time_ = worker_.loop().now();
  worker_.shared().latest_moment.note(response_time_);
  on_final_head();
  return used;
}

// False when the fetch has ended by it.
bool Fetch::on_interim_head() {
  if (++interim_responses_ > request_->runtime->config.limits.interim_responses) {
    fail(502, Outcome::kOriginInvalid, "too-many-interim-responses");
    return false;
  }
  const http::InterimContext context = {.client = request_->head.version};
  switch (http::interim_action(head_.status, context)) {
    case http::InterimAction::kForward: {
      std::string text;
      append_status_line(head_.status, head_.reason, text);
      const http::HopByHop hop_by_hop(head_.fields);
      for (const http::Field& field : head_.fields) {
        if (hop_by_hop.drops(field)) continue;
        text += field.name;
        text += ": ";
        text += field.value;
        text += "\r\n";
      }
      text += request_->runtime->via_field_11;
      text += "\r\n";
      transfer_->publish_interim(text);
      return true;
    }
    case http::InterimAction::kDrop:
      return true;
    case http::InterimAction::kSwitch:
    case http::InterimAction::kBad:
      fail(502, Outcome::kOriginInvalid, "unasked-upgrade");
      return false;
  }
  return true;
}

void Fetch::on_final_head() {
  framing_ = http::response_framing(request_->head.method, head_);
  if (framing_.kind == http::BodyKind::kError) {
    fail(502, Outcome::kOriginInvalid, "framing");
    return;
  }
  // Whom nobody asked whether something had changed, says nothing by that it has not.
  if (head_.status == 304 && !asked_condition_) {
    fail(502, Outcome::kOriginInvalid, "unasked-304");
    return;
  }
  keep_alive_ = http::keep_alive(head_) && framing_.reusable;
  const bool bodiless = framing_.kind == http::BodyKind::kNone ||
                        (framing_.kind == http::BodyKind::kLength && framing_.length == 0);
  // More than was announced is no response to anything: the connection is not used again.
  if (bodiless && surplus_) keep_alive_ = false;
  directives_ = http::effective_directives(head_.fields, request_->targets());
  if (plan_.stored) {
    if (head_.status == 304) {
      on_not_modified();
      return;
    }
    if (http::is_error_status(head_.status) && serve_stale_on_error()) return;
    if (request_->head.method == http::Method::kHead) update_by_head();
  }
  if (plan_.completes && (head_.status == 206 || head_.status == 416) && !complete_part()) {
    // What is stored is no part of what is there now: all of that is asked for.
    plan_.completes = {};
    reconnect();
    return;
  }
  if (restart_as_asked()) return;
  if (http::invalidates(request_->head.method, head_.status)) invalidate_others();

  auto response = make_reused<SharedResponse>();
  const http::UnixSeconds arrival = http::to_unix(response_wall_);
  http::StoreDecision decision =
      http::may_store(request_->head, request_->target, request_->directives, head_, directives_,
                      arrival, request_->runtime->store_options);
  response->names = http::selecting_names(head_.fields);
  if (response->names != "*" && !http::write_variant_key(response->names, request_->head.fields,
                                                         request_->vary(), response->variant_key)) {
    response->names = "*";
    if (decision.ok()) decision.reason = http::StoreReason::kVaryTooLarge;
  }
  response->reason = request_->key.empty() ? http::StoreReason::kMethod : decision.reason;
  if (framing_.kind == http::BodyKind::kLength) response->length = framing_.length;
  if (framing_.kind == http::BodyKind::kNone && head_.status != 204) {
    // A HEAD's or a 304's Content-Length speaks of another message's body.
    std::uint64_t told = 0;
    if (http::parse_decimal(head_.fields.value(http::FieldId::kContentLength), told)) {
      response->length = told;
    }
  }
  // Dates are read only where somebody will ask for them.
  if (decision.ok() || request_->head.fields.has_any(http::kRequestExtras)) {
    response->meta =
        http::make_stored_meta(head_, directives_, decision.lifetime, exchange_times());
    apply_defaults(response->meta);
  } else {
    response->meta.status = head_.status;
  }
  if (!response->names.empty()) {
    response->variant = variant_of(response->names, response->variant_key);
  }
  response->whole = plan_.whole && head_.status == 200;
  if (worker_.logs_requests()) response->origin = stream_->peer().to_string();
  response->content_type = head_.fields.value(http::FieldId::kContentType);
  response->common_bytes = build_forward_head(head_,
                                              {.length = response->length,
                                               .http_date = worker_.loop().http_date(),
                                               .withheld = directives_.stripped_fields},
                                              request_->runtime->head_options, response->head);
  place_etag(response->head, head_.fields.value(http::FieldId::kEtag), response->meta);
  if (decision.strips_set_cookie) directives_.stripped_fields.emplace_back("set-cookie");
  drop_outdated(decision);
  decide_admission(*response, decision);
  if (storable_) raw_head_ = head_bytes_;
  publish_head(std::move(response));
}

// What becomes of it in the cache. Sets outcome, shareable, stored.
void Fetch::decide_admission(SharedResponse& response, const http::StoreDecision& decision) {
  const bool ok = decision.ok() && !request_->key.empty();
  const std::uint32_t joined = transfer_->close_joining();
  const http::Method method = request_->head.method;
  const bool part = head_.status == 206;
  const MonotonicTime now = worker_.loop().now();
  // What others would have to validate at once is no answer to them, and what one can be validated
  // by must not be for the one who asked alone.
  response.shareable = ok && !part && response.meta.etag_offset <= response.common_bytes &&
                       http::may_share(response.meta, {}, now, {});
  if (!ok) {
    response.outcome = http::is_safe(method) ? Outcome::kUncacheable : Outcome::kMethod;
    // What one request says too much of keeps others from nothing.
    if (plan_.in_table && decision.reason != http::StoreReason::kVaryTooLarge) {
      remember_sharing(false, Inflight::Unshared::kUncacheable);
    } else {
      count_unstored(response, decision);
    }
    return;
  }
  remember_sharing(response.shareable, Inflight::Unshared::kAnswer);
  const bool can_store =
      part ? may_store_part()
           : (method == http::Method::kGet && plan_.whole) || method == http::Method::kPost;
  const std::uint64_t length = can_store ? response.size_for_admission() : 0;
  if (length > request_->runtime->max_object_bytes) {
    response.outcome = Outcome::kTooLarge;
    return;
  }
  const auto reason = worker_.shared().kernel->admit(
      cache::Key{request_->hash, request_->key},
      {.variant = response.variant, .requests = 1 + joined, .size_bytes = length}, now);
  response.outcome = outcome_of(reason);
  storable_ = can_store && reason != cache::AdmitReason::kTooLarge;
  response.stored = storable_ && cache::is_stored(reason);
}

// Whoever asks next does not wait for what he could not have; or does again.
void Fetch::remember_sharing(bool shareable, Inflight::Unshared why) {
  Inflight& inflight = worker_.shared().inflight;
  if (shareable) {
    inflight.forget_unshared(request_->hash);
  } else if (plan_.in_table) {
    inflight.remember_unshared(
        request_->hash, why,
        worker_.loop().now() + request_->runtime->config.cache.uncacheable_memory);
  }
}

// A 304 to the client's own condition tells of a response that could be stored: it counts as a
// request. Nothing of it is kept.
void Fetch::count_unstored(SharedResponse& response, const http::StoreDecision&) {
  if (head_.status != 304 || request_->head.method != http::Method::kGet || request_->key.empty() ||
      directives_.no_store || directives_.is_private || request_->directives.no_store ||
      request_->head.fields.has(http::FieldId::kAuthorization)) {
    return;
  }
  const auto reason = worker_.shared().kernel->admit(
      cache::Key{request_->hash, request_->key},
      {.variant = response.variant, .requests = 1, .size_bytes = 0}, worker_.loop().now());
  response.outcome = outcome_of(reason);
  response.reason = http::StoreReason::kOk;
}

void Fetch::publish_head(std::shared_ptr<SharedResponse> response) {
  response_ = std::move(response);
  const bool has_body = framing_.kind != http::BodyKind::kNone;
  const bool store = response_->stored.value_or(false);
  response_->stored = false;
  store::BodyOptions options;
  if (framing_.kind == http::BodyKind::kLength) options.length = framing_.length;
  options.use = store ? store::BodyUse::kStored : store::BodyUse::kTransfer;
  auto body = worker_.shared().store->make_body(options);
  if (!body && worker_.relief().make_room_at_once()) {
    body = worker_.shared().store->make_body(options);
  }
  if (!body) {
    fail(503, Outcome::kNoMemory, "out-of-memory");
    return;
  }
  body_ = std::move(*body);
  if (store && begin_storing(options.length.value_or(0))) {
    // What grows may turn out too large, and a part may not fit the one that is stored.
    if (options.length && head_.status != 206) {
      response_->stored = true;
    } else {
      response_->stored.reset();
    }
  } else if (store) {
    response_->outcome = Outcome::kTooLarge;
  }
  state_ = State::kBody;
  since_ = worker_.loop().now();
  left_ = framing_.length;
  const config::Limits& limits = request_->runtime->config.limits;
  decoder_ = http::ChunkedDecoder({.extension_bytes_max = limits.chunk_extension_bytes,
                                   .trailer_bytes_max = limits.trailers_bytes});
  const bool joinable = plan_.in_table && response_->shareable && storable_;
  pending_publish_ = true;
  joinable_after_head_ = joinable;
  if (!whole_head_.empty() && !append_stored_part()) {
    fail(503, Outcome::kNoMemory, "out-of-memory");
    return;
  }
  if (!has_body || (framing_.kind == http::BodyKind::kLength && framing_.length == 0)) {
    end_body(keep_alive_);
  }
}

// Readers are told once for the head and what of the body came with it.
void Fetch::publish_now() {
  if (!std::exchange(pending_publish_, false)) return;
  transfer_->publish_response(response_, body_, joinable_after_head_);
  if (!joinable_after_head_) worker_.shared().inflight.remove(*transfer_);
}

// RFC 9111 4.3.4: the stored response is confirmed; its fields and times are updated.
void Fetch::on_not_modified() {
  const store::ObjectRef& old = plan_.stored;
  const http::UnixSeconds arrival = http::to_unix(response_wall_);
  const http::Validators stored = http::stored_validators(meta_of(*old).http, stored_head_of(*old));
  if (!http::not_modified_matches(stored, http::received_validators(head_, arrival))) {
    // It confirms something that we do not have: ask without conditions.
    plan_.stored = {};
    reconnect();
    return;
  }
  Confirmed confirmed = freshen_stored();
  const bool shareable = confirmed.stays && http::may_share(meta_of(*confirmed.object).http, {},
                                                            worker_.loop().now(), {});
  remember_sharing(shareable, Inflight::Unshared::kAnswer);
  worker_.shared().inflight.remove(*transfer_);
  const bool reusable = keep_alive_;
  transfer_->publish_validated({.object = std::move(confirmed.object),
                                .status = 304,
                                .shareable = shareable,
                                .private_lines = private_lines(head_, directives_.stripped_fields,
                                                               request_->runtime->head_options)});
  release_connection(reusable);
  end();
}

// The stored response with the fields and times of the one that came; in the cache too, unless what
// came forbids that.
Fetch::Confirmed Fetch::freshen_stored() {
  const store::ObjectRef& old = plan_.stored;
  const Runtime& runtime = *request_->runtime;
  ObjectMeta meta = meta_of(*old);
  std::string head;
  const http::Freshened freshened =
      http::freshen(stored_head_of(*old), head_,
                    {.request = request_->head,
                     .target = request_->target,
                     .directives = request_->directives,
                     .targets = request_->targets(),
                     .exchange = exchange_times()},
                    runtime.store_options, runtime.head_options, head);
  meta.http = freshened.meta;
  apply_defaults(meta.http);
  place_content_type(head, meta);
  head += trailers_of(*old);
  std::string tags = tags_in(head_.fields, runtime.config.cache.tag_fields);
  if (tags.empty()) tags = tags_of(*old);
  meta.tag_bytes = static_cast<std::uint32_t>(tags.size());
  head += tags;
  std::string key(old->key());
  std::string own;
  bool allowed = freshened.decision.ok();
  if (allowed && freshened.names != names_of(*old)) {
    // It is this request's variant by other fields than it was stored by.
    allowed =
        http::write_variant_key(freshened.names, request_->head.fields, request_->vary(), own);
    meta.variant = variant_of(freshened.names, own);
    meta.names_bytes = static_cast<std::uint32_t>(freshened.names.size());
    key = std::string(primary_key_of(*old)) + freshened.names + own;
  }
  auto made = worker_.shared().store->with_head(
      old, {.key = key, .meta = std::as_bytes(std::span(&meta, 1)), .head = head});
  Confirmed confirmed{.object = made ? *made : old, .stays = false};
  if (allowed) {
    confirmed.stays = made && store_freshened(meta, *made);
  } else if (!is_of_the_request(freshened.decision.reason)) {
    worker_.shared().kernel->remove(cache::Key{request_->hash, request_->key},
                                    meta_of(*old).variant, worker_.loop().now());
  }
  return confirmed;
}

// Puts the freshened response in the place of the old one. False where it is not stored any more.
bool Fetch::store_freshened(const ObjectMeta& meta, store::ObjectRef& made) {
  cache::Kernel& kernel = *worker_.shared().kernel;
  const cache::Key key{request_->hash, request_->key};
  const MonotonicTime now = worker_.loop().now();
  const std::uint64_t old_variant = meta_of(*plan_.stored).variant;
  const cache::Stored entry{.variant = meta.variant,
                            .charge_bytes = made->charge(),
                            .fresh_until = meta.http.fresh_until,
                            .keep_until = keep_until(meta.http),
                            .payload = made.payload()};
  bool stored = false;
  if (meta.variant == old_variant) {
    stored = kernel.freshen(key, entry, now) == cache::FreshenOutcome::kFreshened;
  } else {
    kernel.remove(key, old_variant, now);
    const std::uint64_t room = entry.charge_bytes + kernel.charge_of_entry();
    if (kernel.reserve(key, room, now) != cache::ReserveOutcome::kReserved) return false;
    const auto outcome = kernel.commit(key, entry, room, now);
    stored = outcome == cache::CommitOutcome::kStored || outcome == cache::CommitOutcome::kReplaced;
  }
  if (stored) {
    (void)made.detach();
    drop_if_overtaken(meta);
  }
  // Where the cache let it go meanwhile, it is as good for those who wait.
  return true;
}

// RFC 9111 4.3.5: the response to a HEAD speaks of what a GET would bring.
void Fetch::update_by_head() {
  const store::ObjectRef& old = plan_.stored;
  const ObjectMeta& meta = meta_of(*old);
  const http::Validators stored = http::stored_validators(meta.http, stored_head_of(*old));
  const auto shown =
      http::head_shows(stored, head_, old->body_size(), http::to_unix(response_wall_));
  const bool same_status = head_.status == meta.http.status;
  if (same_status && shown == http::HeadShows::kSame) {
    (void)freshen_stored();
  } else if (!http::is_error_status(head_.status) &&
             (!same_status || shown == http::HeadShows::kChange)) {
    const MonotonicTime now = worker_.loop().now();
    worker_.shared().latest_moment.note(now);
    worker_.shared().kernel->mark_stale(cache::Key{request_->hash, request_->key}, now);
  }
}

// What was to be validated is gone where the origin's new answer may not take its place. Of a HEAD
// that counts only where it forbids keeping it.
void Fetch::drop_outdated(const http::StoreDecision& decision) {
  if (!plan_.stored || decision.ok() || head_.status >= 500 || is_of_the_request(decision.reason)) {
    return;
  }
  if (request_->head.method != http::Method::kGet &&
      decision.reason != http::StoreReason::kPrivate &&
      decision.reason != http::StoreReason::kNoStore &&
      decision.reason != http::StoreReason::kVaryStar) {
    return;
  }
  worker_.shared().kernel->remove(cache::Key{request_->hash, request_->key},
                                  meta_of(*plan_.stored).variant, worker_.loop().now());
}

void Fetch::apply_defaults(http::StoredMeta& meta) const {
  if (request_->is_forward() && stream_ != nullptr && !stream_->peer().is_global()) {
    meta.flags |= http::StoredMeta::kPrivateOrigin;
  }
  for (const store::ObjectRef* part : {&plan_.stored, &plan_.completes}) {
    if (*part && meta_of(**part).http.is(http::StoredMeta::kPrivateOrigin)) {
      meta.flags |= http::StoredMeta::kPrivateOrigin;
    }
  }
  if (is_overtaken()) meta.flags |= http::StoredMeta::kInvalidated;
  const auto window = std::chrono::duration_cast<std::chrono::seconds>(
      request_->runtime->config.cache.stale_while_revalidate);
  if (directives_.stale_while_revalidate || window.count() == 0) return;
  meta.swr_seconds = static_cast<std::uint32_t>(window.count());
}

// Whether the key was invalidated or purged since the request was sent: what comes may be from
// before that, and is validated before its first use.
bool Fetch::is_overtaken() const {
  return worker_.shared().inflight.invalidations().has_since(request_->hash, invalidations_seen_);
}

// After it was stored: what was invalidated between the look before and the storing goes again.
void Fetch::drop_if_overtaken(const ObjectMeta& meta) {
  if (meta.http.is(http::StoredMeta::kInvalidated) || !is_overtaken()) return;
  worker_.shared().kernel->remove(cache::Key{request_->hash, request_->key}, meta.variant,
                                  worker_.loop().now());
}

http::StoredMeta Fetch::stored_meta() const {
  return meta_until(*plan_.stored, plan_.stored_fresh_until);
}

bool Fetch::serve_stale_on_error() {
  const bool may =
      http::may_serve_stale(stored_meta(), request_->directives, worker_.loop().now(),
                            http::OriginFailure::kErrorStatus, request_->runtime->stale_options);
  if (!may) return false;
  worker_.shared().inflight.remove(*transfer_);
  transfer_->publish_validated({.object = plan_.stored, .stale = true, .status = head_.status});
  release_connection(false);
  end();
  return true;
}

void Fetch::invalidate_others() {
  if (request_->key.empty()) return;
  for (const std::string& uri :
       http::invalidated_keys(request_->target, head_, request_->key_options())) {
    std::string key(kForwardRealm);
    if (!request_->is_forward()) {
      // Location may lead to what another route of the same site answers.
      const Route* route = request_->runtime->router.match_uri(uri);
      if (route == nullptr) continue;
      key = route->realm();
    }
    key += uri;
    const auto hash =
        filter::hash_key(filter::HashFamily::kXxh3, worker_.shared().identity_seed, key);
    worker_.shared().inflight.invalidate(hash, key);
    worker_.shared().kernel->invalidate(cache::Key{hash, key}, worker_.loop().now());
  }
  // Its own response is newer than that.
  invalidations_seen_ = worker_.shared().inflight.invalidations().count();
}

}  // namespace encore::server

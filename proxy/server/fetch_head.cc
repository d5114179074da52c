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
  const std::size_t used = head_.head_size;
  if (http::is_interim(head_.status)) {
    (void)on_interim_head();
    return used;
  }
  head_bytes_ = bytes.substr(0, used);
  surplus_ = bytes.size() > used;
  response_wall_ = worker_.loop().wall_now();
  response_time_ = worker_.loop().now();
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
    release_connection(false);
    acquire(true);
    return;
  }
  if (restart_as_asked()) return;
  if (http::invalidates(request_->head.method, head_.status)) invalidate_others();

  auto response = make_reused<SharedResponse>();
  const http::UnixSeconds arrival = http::to_unix(response_wall_);
  const http::StoreDecision decision =
      http::may_store(request_->head, request_->target, request_->directives, head_, directives_,
                      framing_, arrival, request_->runtime->store_options);
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
  response->names = http::selecting_names(head_.fields);
  http::write_variant_key(response->names == "*" ? "" : response->names, request_->head.fields,
                          request_->vary(), response->variant_key);
  if (!response->names.empty()) {
    response->variant = filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{},
                                         response->names + '\n' + response->variant_key)
                            .lo;
  }
  response->whole = plan_.whole && head_.status == 200;
  if (worker_.logs_requests()) response->origin = stream_->peer().to_string();
  response->content_type = head_.fields.value(http::FieldId::kContentType);
  build_forward_head(head_, response->length, request_->runtime->head_options,
                     worker_.loop().http_date(), response->head);
  place_etag(response->head, head_.fields.value(http::FieldId::kEtag), response->meta);
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
  response.shareable = ok && !part;
  if (!ok) {
    response.outcome = http::is_safe(method) ? Outcome::kUncacheable : Outcome::kMethod;
    if (plan_.in_table) {
      worker_.shared().inflight.remember_uncacheable(
          request_->hash,
          worker_.loop().now() + request_->runtime->config.cache.uncacheable_memory);
    } else {
      count_unstored(response, decision);
    }
    return;
  }
  if (!part) worker_.shared().inflight.forget_uncacheable(request_->hash);
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
      {.variant = response.variant, .requests = 1 + joined, .size_bytes = length},
      worker_.loop().now());
  response.outcome = outcome_of(reason);
  storable_ = can_store && reason != cache::AdmitReason::kTooLarge;
  response.stored = storable_ && cache::is_stored(reason);
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
  const bool store = response_->stored;
  response_->stored = false;
  store::BodyOptions options;
  if (framing_.kind == http::BodyKind::kLength) options.length = framing_.length;
  options.use = store ? store::BodyUse::kStored : store::BodyUse::kTransfer;
  auto body = worker_.shared().store->make_body(options);
  if (!body) {
    fail(503, Outcome::kInternal, "out-of-memory");
    return;
  }
  body_ = std::move(*body);
  if (store) response_->stored = begin_storing(options.length.value_or(0));
  if (store && !response_->stored) response_->outcome = Outcome::kTooLarge;
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
    fail(503, Outcome::kInternal, "out-of-memory");
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
    release_connection(false);
    acquire(true);
    return;
  }
  const store::ObjectRef renewed = freshen_stored();
  worker_.shared().inflight.remove(*transfer_);
  const bool reusable = keep_alive_;
  transfer_->publish_validated(renewed, false, 304);
  release_connection(reusable);
  end();
}

// The stored response with the fields and times of the one that came; in the cache too.
store::ObjectRef Fetch::freshen_stored() {
  const store::ObjectRef& old = plan_.stored;
  const Runtime& runtime = *request_->runtime;
  ObjectMeta meta = meta_of(*old);
  std::string head;
  meta.http = http::freshen(stored_head_of(*old), head_, request_->targets(), exchange_times(),
                            runtime.store_options.freshness, runtime.head_options, head);
  apply_defaults(meta.http);
  place_content_type(head, meta);
  head += trailers_of(*old);
  std::string tags = tags_in(head_.fields, runtime.config.cache.tag_fields);
  if (tags.empty()) tags = tags_of(*old);
  meta.tag_bytes = static_cast<std::uint32_t>(tags.size());
  head += tags;
  auto made = worker_.shared().store->with_head(
      old, {.key = old->key(), .meta = std::as_bytes(std::span(&meta, 1)), .head = head});
  if (!made) return old;
  cache::Stored entry{.variant = meta.variant,
                      .charge_bytes = (*made)->charge(),
                      .fresh_until = meta.http.fresh_until,
                      .keep_until = keep_until(meta.http),
                      .payload = made->payload()};
  store::ObjectRef renewed = *made;
  const auto outcome = worker_.shared().kernel->freshen(cache::Key{request_->hash, request_->key},
                                                        entry, worker_.loop().now());
  if (outcome == cache::FreshenOutcome::kFreshened) {
    (void)made->detach();
    drop_if_overtaken(meta);
  }
  return renewed;
}

// RFC 9111 4.3.5: the response to a HEAD speaks of what a GET would bring.
void Fetch::update_by_head() {
  const store::ObjectRef& old = plan_.stored;
  const ObjectMeta& meta = meta_of(*old);
  const http::Validators stored = http::stored_validators(meta.http, stored_head_of(*old));
  const bool same =
      head_.status == meta.http.status &&
      !http::head_shows_change(stored, head_, old->body_size(), http::to_unix(response_wall_));
  if (same) {
    (void)freshen_stored();
  } else if (!http::is_error_status(head_.status)) {
    worker_.shared().kernel->mark_stale(cache::Key{request_->hash, request_->key},
                                        worker_.loop().now());
  }
}

// What was to be validated is gone where the origin's new answer may not take its place.
void Fetch::drop_outdated(const http::StoreDecision& decision) {
  if (!plan_.stored || decision.ok() || head_.status >= 500 ||
      request_->head.method != http::Method::kGet ||
      decision.reason == http::StoreReason::kRequestNoStore ||
      decision.reason == http::StoreReason::kAuthorization) {
    return;
  }
  worker_.shared().kernel->remove(cache::Key{request_->hash, request_->key},
                                  meta_of(*plan_.stored).variant, worker_.loop().now());
}

void Fetch::apply_defaults(http::StoredMeta& meta) const {
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
  transfer_->publish_validated(plan_.stored, true, head_.status);
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

// The middle of a fetch: the response's head, and what is done as it says.
#include <utility>

#include "base/check.h"
#include "proxy/http/digest_path.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/interim.h"
#include "proxy/http/reuse.h"
#include "proxy/observe/request_steps.h"
#include "proxy/origin/admission.h"
#include "proxy/origin/changes.h"
#include "proxy/origin/cross_origin.h"
#include "proxy/origin/entry.h"
#include "proxy/origin/fetch.h"
#include "proxy/origin/freshening.h"
#include "proxy/origin/parts.h"
#include "proxy/origin/passed_response.h"
#include "proxy/origin/redirection.h"
#include "proxy/request/parent.h"

namespace encore::server {
namespace {

Asked asked_of(const RequestContext& request, const FetchPlan& plan, bool condition) {
  return {.request = request.head,
          .directives = request.directives,
          .whole = plan.whole,
          .condition = condition,
          .completion = static_cast<bool>(plan.completes)};
}

// True if the response comes from a place where not everybody may go, now or as it was stored.
bool is_private_origin(const RequestContext& request, const FetchPlan& plan,
                       const net::Address& peer) {
  if (parent_of(request) != nullptr) {
    // The address that the parent has connected to is not known, unless the target says it.
    const auto address = net::Address::parse_ip(std::string(request.target.authority.host), 0);
    if (address && !address->is_global()) return true;
  } else if (request.is_forward() && !peer.is_global()) {
    return true;
  }
  for (const store::ObjectRef* part : {&plan.stored, &plan.completes}) {
    if (*part && meta_of(**part).http.is(http::StoredMeta::kPrivateOrigin)) return true;
  }
  return false;
}

// The digest that the body must have; nothing: it is not looked at.
std::optional<std::string> digest_to_verify(const RequestContext& request,
                                            const ReceivedResponse& received) {
  const Rule* const rule = request.rule;
  if (rule == nullptr || !rule->verifies() || request.head.method != http::Method::kGet ||
      received.head.status != 200 || received.completed ||
      received.head.fields.has(http::FieldId::kContentEncoding)) {
    return std::nullopt;
  }
  return request.digest.empty() ? std::nullopt : std::optional(request.digest);
}

// Content that could not be verified is kept neither under its digest, nor in part.
bool may_keep(const RequestContext& request, const ReceivedResponse& received, bool is_verified) {
  const Rule* const rule = request.rule;
  constexpr int kSuccess = 2;
  // A refusal is for who was refused.
  if (rule != nullptr && rule->rechecks() && received.head.status / 100 != kSuccess) return false;
  if (rule == nullptr || is_verified) return true;
  // A redirection may depend on who asked: to a page where one logs in, say.
  if (rule->rechecks() && request.was_redirected) return false;
  if (!rule->verifies()) return true;
  if (request.key.find(http::kDigestKey, kRealmBytes) == kRealmBytes) return false;
  return received.head.status != 200 && received.head.status != 206;
}

// Counted with the rule that says so. A 304 tells of the stored response.
const RequestPolicy& policy_for_content_type(const http::ResponseHead& head,
                                             const RequestContext& request, const FetchPlan& plan,
                                             std::size_t worker) {
  std::string_view type = head.fields.value(http::FieldId::kContentType);
  if (head.status == 304 && type.empty() && plan.stored) type = content_type_of(*plan.stored);
  const Rule* const rule = request.rule_of(type);
  if (rule != nullptr) rule->counts(worker).responses.add();
  return request.policy_by_rule(rule);
}

HeadPlan plan_by_head(const OriginServices& services, const RequestContext& request,
                      const ReceivedResponse& received, const FetchPlan& plan, const Asked& asked,
                      bool surplus) {
  std::optional<PendingValidation> stored;
  if (plan.stored) {
    stored = PendingValidation{.meta = meta_until(*plan.stored, plan.stored_fresh_until),
                               .head = stored_head_of(*plan.stored)};
  }
  ResponseFacts facts = {
      .asked = asked,
      .head = received.head,
      .framing = received.framing,
      .surplus = surplus,
      .stored = stored ? &*stored : nullptr,
      .range_fetch_bytes_max = request.runtime->config.cache.range_fetch_max_bytes,
      .arrival = received.arrival(),
      .now = services.loop.now(),
      .stale = request.request_policy->stale};
  if (stands_for_range(facts) && received.framing.kind == http::BodyKind::kLength) {
    facts.refused_for_size =
        is_refused_for_size(services, request, *received.request_policy, received.framing.length);
  }
  return plan_head(facts);
}

// RFC 9110 10.1.1, RFC 9112 9.3: a complete response does not end a request whose body is still on
// its way. Not where the client waits for leave to send it (Expect): it may send none now. Why the
// rest is sent: docs/decisions/0382.
bool may_outlive_response(const RequestContext& request, const RequestWriter& writer) {
  const bool waits_for_leave =
      request.head.fields.has(http::FieldId::kExpect) && !writer.has_taken_body();
  return !waits_for_leave && !writer.is_complete() &&
         request.runtime->config.limits.body_behind_response_bytes != 0;
}

}  // namespace

// Returns how many bytes were used; 0 with the state unchanged where the head is not all there.
std::size_t Fetch::on_head(std::string_view bytes) {
  ReceivedResponse& received = *received_;
  http::ParseError error;
  const auto status =
      http::parse_response(bytes, request_->runtime->head_limits, progress_, received.head, error);
  if (status == http::ParseStatus::kIncomplete) return 0;
  progress_ = {};
  if (status == http::ParseStatus::kBad) {
    fail({502, Outcome::kOriginInvalid, std::string(http::to_string(error.reason))});
    return bytes.size();
  }
  link_.note_answer();
  const std::size_t used = received.head.head_size;
  if (http::is_interim(received.head.status)) {
    on_interim_head();
    return used;
  }
  received.head_bytes = bytes.substr(0, used);
  if (request_->is_cross_origin && !strip_host_specific_fields(*request_, received)) {
    fail({502, Outcome::kOriginInvalid, "head-too-large"});
    return used;
  }
  received.wall = services_.loop.wall_now();
  received.time = services_.loop.now();
  services_.old_servers.note({link_.pool_key(), services_.identity_seed}, received.head.version,
                             received.time);
  // Other workers' clocks may stand behind this moment: they catch up before they look.
  services_.latest_moment.note(received.time);
  link_.tally().add_answer(received.head.status, received.time - received.request_time);
  if (request_->runtime->follows_requests) [[unlikely]] {
    log_step(request_->request_id, {"fetch: status ", std::to_string(received.head.status)});
  }
  visit_.answer = received.time - received.request_time;
  on_final_head(bytes.size() > used);
  return used;
}

void Fetch::on_interim_head() {
  const http::ResponseHead& head = received_->head;
  if (++interim_responses_ > request_->runtime->config.limits.interim_responses) {
    fail({502, Outcome::kOriginInvalid, "too-many-interim-responses"});
    return;
  }
  switch (http::interim_action(
      head.status, {.client = request_->head.version, .asked_upgrade = request_->asks_upgrade()})) {
    case http::InterimAction::kForward:
      // Another origin's is of its own host.
      if (!request_->is_cross_origin) transfer_->publish_interim(interim_text(*request_, head));
      return;
    case http::InterimAction::kDrop:
      return;
    case http::InterimAction::kSwitch:
    case http::InterimAction::kBad:
      break;
  }
  // The connection is no more ours to understand: it goes to who has the client's. Only where all
  // of the request is with the origin (RFC 9110 7.8) is what follows no part of that.
  const std::string protocol = http::switched_protocol(request_->upgrade, head);
  if (protocol.empty() || !writer_.is_complete()) {
    fail({502, Outcome::kOriginInvalid, "unasked-upgrade"});
    return;
  }
  std::string text = switching_text(*request_, head, protocol);
  const auto transfer = transfer_;
  switched_ = true;
  SwitchedConnection switched = link_.hand_over();
  switched.head = std::move(text);
  end();
  transfer->publish_switched(std::move(switched));
}

void Fetch::on_final_head(bool surplus) {
  ReceivedResponse& received = *received_;
  received.framing = http::response_framing(request_->head.method, received.head);
  // In this order: a rule may go by the type of the content, and the directives leave out what the
  // rule ignores.
  received.request_policy =
      &policy_for_content_type(received.head, *request_, plan_, services_.stats.number);
  received.directives = governing_directives(*request_, received);
  received.private_origin = is_private_origin(*request_, plan_, link_.stream().peer());
  received.part_with_cookie =
      plan_.completes && meta_of(*plan_.completes).http.is(http::StoredMeta::kWithCookie);
  const HeadPlan plan = plan_by_head(services_, *request_, received, plan_,
                                     asked_of(*request_, plan_, asked_condition_), surplus);
  keep_alive_ = plan.keep_alive;
  switch (plan.step) {
    case ResponseStep::kRefuse:
      fail({502, Outcome::kOriginInvalid, std::string(plan.refusal)});
      return;
    case ResponseStep::kConfirm:
      confirm_stored();
      return;
    case ResponseStep::kAskAnew:
      // Its 304 is of another version than the stored one. Without a condition the whole comes.
      plan_.stored = {};
      ask_again();
      return;
    case ResponseStep::kServeStale:
      serve_stale(received.head.status);
      return;
    case ResponseStep::kComplete:
      if (complete_part(*request_, *plan_.completes, received)) break;
      // The stored part is no part of the present representation: all of that is requested.
      plan_.completes = {};
      ask_again();
      return;
    case ResponseStep::kAskAsTold:
      if (ask_as_told()) return;
      break;
    case ResponseStep::kPass:
      break;
  }
  Redirection redirection = find_redirection(
      request_, {.redirects = plan_.redirects, .has_upload = plan_.has_upload}, received);
  if (redirection.to == nullptr || !name_to_check(*redirection.to)) {
    follow_redirection(std::move(redirection), plan);
    return;
  }
  // The client can be given the response only as long as that is here (docs/decisions/0310).
  received.keep();
  link_.stream().pause_reading();
  name_check_ =
      std::make_unique<NameCheck>(services_.loop, services_.resolver, std::move(redirection.to),
                                  [this, plan](Redirection found) {
                                    const PanicNote note(state_.activity());
                                    const auto ended = std::move(name_check_);
                                    follow_redirection(std::move(found), plan);
                                    if (state_ != State::kBody) return;
                                    publish_head();
                                    link_.stream().resume_reading();
                                  });
}

// A redirection is followed by another fetch, for the same readers. Everything else is handed on.
void Fetch::follow_redirection(Redirection redirection, const HeadPlan& plan) {
  unfollowed_ = redirection.why;
  if (redirection.to == nullptr) return pass_on(plan);
  FetchPlan further = std::move(plan_);
  ++further.redirects;
  // The stored response is that of the first request: what was invalidated since overtakes it.
  if (!further.invalidations_seen) further.invalidations_seen = received_->invalidations_seen;
  further.completes = {};
  services_.stats.redirects_followed.add();
  end();
  start(services_, transfer_, std::move(redirection.to), std::move(further));
}

// RFC 9111 4.3.4: the stored response is confirmed; its fields and times are updated.
void Fetch::confirm_stored() {
  Confirmed confirmed = freshen_stored(services_, *request_, *received_, plan_.stored);
  const bool shareable = confirmed.stays && http::may_share(meta_of(*confirmed.object).http, {},
                                                            services_.loop.now(), {});
  if (shareable || plan_.in_table) {
    remember_sharing(services_, *request_,
                     shareable ? Inflight::Unshared::kNo : Inflight::Unshared::kValidated);
  }
  if (plan_.background) note_refresh(services_, *request_, Refresh::kDone);
  services_.inflight.remove(*transfer_);
  const auto lines = private_lines(received_->head, received_->directives.stripped_fields,
                                   request_->head_options());
  const auto transfer = transfer_;
  release_connection(keep_alive_);
  end();
  // Told last: readers act within the call, and this fetch has no part in that any more.
  transfer->publish_validated({.object = std::move(confirmed.object),
                               .unstored = std::move(confirmed.unstored),
                               .status = 304,
                               .shareable = shareable,
                               .private_lines = lines,
                               .visit = std::move(visit_)});
}

void Fetch::serve_stale(int status) {
  if (plan_.background) note_refresh(services_, *request_, Refresh::kFailed);
  services_.inflight.remove(*transfer_);
  const auto transfer = transfer_;
  const store::ObjectRef stored = plan_.stored;
  end();
  transfer->publish_validated({.object = stored,
                               .stale = true,
                               .status = status,
                               .visit = std::move(visit_),
                               .detail = "status-" + std::to_string(status)});
}

// The client's own request goes in place of the whole. False where others wait for the whole.
bool Fetch::ask_as_told() {
  services_.inflight.remove(*transfer_);
  if (transfer_->count_joined() != 0) return false;
  keep_ranges_alone(services_, *request_);
  plan_.whole = false;
  plan_.in_table = false;
  ask_again();
  return true;
}

// It is handed on to the readers, and stored where it may be.
void Fetch::pass_on(const HeadPlan& plan) {
  ReceivedResponse& received = *received_;
  if (plan_.background) {
    const bool failed = http::is_error_status(received.head.status);
    note_refresh(services_, *request_, failed ? Refresh::kFailed : Refresh::kDone);
  }
  if (plan.updates_stored) {
    update_by_head(services_, *request_, received, plan_.stored,
                   proof_wanted(*request_, *plan_.stored, plan_.stored_fresh_until));
  }
  if (plan_.stored && !plan.updates_stored) {
    note_answer(services_, *request_, received, *plan_.stored);
  }
  if (plan.invalidates) {
    invalidate_others(services_, *request_, received.head);
    // Its own response is newer than that.
    received.invalidations_seen = services_.inflight.invalidations().count();
  }
  auto [response, decision] = make_passed_response(services_, *request_, received, plan_.whole);
  response->visit = visit_;
  response->unfollowed = unfollowed_;
  verified_digest_ = digest_to_verify(*request_, received);
  // Nothing is cut of what is not known to be right.
  if (verified_digest_) response->whole = false;
  if (!may_keep(*request_, received, verified_digest_.has_value())) {
    decision.reason = response->reason = http::StoreReason::kRule;
  }
  const std::uint32_t joined = transfer_->count_joined();
  response->has_large_head = decision.ok() && has_large_head(*request_, received, *response);
  if (response->has_large_head) services_.stats.large_heads.add();
  StoringPlan storing = plan_storing(
      {.asked = asked_of(*request_, plan_, asked_condition_),
       .head = received.head,
       .directives = received.directives,
       .decision = decision,
       .has_key = request_->is_cacheable(),
       .others_wait = plan_.in_table,
       .fits_range = received.head.status == 206 && fits_range(*request_, received.head),
       .validates = static_cast<bool>(plan_.stored),
       .private_etag = response->meta.etag_offset > response->common_bytes,
       .meta = response->meta,
       .length = response->length,
       .has_large_head = response->has_large_head,
       .object_bytes_max = received.request_policy->max_object_bytes,
       .now = services_.loop.now()});
  storing.hinted = storing.admission == Admission::kAsk && is_hinted(*request_, received);
  if (storing.drops_stored) drop_stored(services_, *request_, *plan_.stored);
  if (storing.unshared) remember_sharing(services_, *request_, *storing.unshared);
  const ResponseBody::Use use =
      admit(services_, *request_, *received.request_policy, storing, joined, *response);
  if (storing.is_for_validation && use != ResponseBody::Use::kStore && joined != 0) {
    note_waited_in_vain();
  }
  // A client that wants no stored response, or a validation, has passed over one.
  const bool is_reload = request_->directives.no_cache || request_->directives.max_age;
  // A body that is held to a digest may be wrong.
  const bool is_sure = decision.ok() && !verified_digest_;
  if ((is_reload || plan_.stored) && use != ResponseBody::Use::kStore && is_sure) {
    end_older(services_, *request_, received, *response);
  }
  if (request_->runtime->follows_requests) [[unlikely]] {
    log_step(request_->request_id, {"fetch: ", to_string(response->outcome),
                                    ", storing: ", http::to_string(response->reason)});
  }
  open_body(std::move(response), use);
}

void Fetch::open_body(std::shared_ptr<SharedResponse> response, ResponseBody::Use use) {
  response_ = std::move(response);
  const bool joinable = plan_.in_table && response_->shareable && use != ResponseBody::Use::kPass;
  if (!body_.open(link_.stream(), *received_, *response_, use,
                  joinable ? ResponseBody::Joining::kWhileKept : ResponseBody::Joining::kNo)) {
    fail({503, Outcome::kNoMemory, "out-of-memory"});
    return;
  }
  // A connection that ends with the response takes no rest of the request.
  if (keep_alive_ && may_outlive_response(*request_, writer_)) writer_.set_outlives_response();
  if (verified_digest_) body_.expect(*verified_digest_);
  // Requests that arrive during the body find it, if nothing was invalidated since it was
  // requested (docs/decisions/0293).
  if (response_->is_for_validation && body_.is_storing() && transfer_->can_be_found() &&
      !transfer_->is_listed() &&
      !services_.inflight.invalidations().has_since(request_->hash,
                                                    received_->invalidations_seen)) {
    services_.inflight.enter(transfer_);
  }
  response_->stored = false;
  if (body_.is_storing()) {
    // A body that grows may turn out too large, and a part may not fit the one that is stored.
    if (response_->length && received_->framing.kind == http::BodyKind::kLength &&
        received_->head.status != 206) {
      response_->stored = true;
    } else {
      response_->stored.reset();
    }
  } else if (use == ResponseBody::Use::kStore) {
    // Admission let it in, and there is no room for it.
    response_->outcome = Outcome::kTooLarge;
  }
  state_.go(State::kBody);
  publication_ = Publication::kDue;
  if (received_->completed && !body_.append_part(*plan_.completes)) {
    fail({503, Outcome::kNoMemory, "out-of-memory"});
    return;
  }
  if (body_.has_nothing_to_come()) end_body(keep_alive_);
}

}  // namespace encore::server

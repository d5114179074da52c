#include "proxy/intake/intake.h"

#include <string>
#include <utility>

#include "base/text.h"
#include "proxy/exchange/decide.h"
#include "proxy/intake/access_check.h"
#include "proxy/intake/challenge_files.h"
#include "proxy/intake/plain_hit.h"
#include "proxy/intake/purge_refusal.h"
#include "proxy/observe/request_steps.h"
#include "proxy/settings/connect_splice.h"

namespace encore::server {

Intake::Outcome Intake::take(const Arrival& arrival, RequestView& view, CacheView& found) {
  const Runtime& runtime = *parts_.runtime;
  const ListenerContext& listener = arrival.listener;
  ClientIdentity& identity = arrival.identity;
  const http::RequestHead& head = arrival.head;
  const ListenerPolicy* const policy = runtime.policy(listener.index);
  view.counts = &listener.counts;
  // To a forward proxy what is asked for says it, not how it is asked.
  view.secure =
      identity.inside() != nullptr || (arrival.is_tls && listener.mode == config::Mode::kReverse);
  identity.identify(policy, head.fields, view);
  if (view.inside != nullptr) [[unlikely]] {
    view.inside->use->go_on(parts_.loop.now());
    if (!identity.is_still_decrypted(runtime, parts_.loop.now())) {
      view.head = &head;
      return Refuse{no_longer_decrypted()};
    }
  }
  if (!runtime.challenge_directory.empty() && !arrival.is_tls && view.inside == nullptr)
      [[unlikely]] {
    if (const auto token = challenge_name(head, listener.mode)) {
      view.head = &head;
      return Refuse{challenge_reply(read_challenge(runtime.challenge_directory, *token))};
    }
  }
  const net::Address& client = identity.client();
  const ViewFault fault = views_.make(head, listener, client, view);
  if (fault.status != 0) return Refuse{refused_by(fault)};
  if (policy != nullptr) {
    if (auto outcome = check(arrival, *policy, view)) return std::move(*outcome);
  }
  if (runtime.identifies_all) view.request_id = identity.request_id(ids_, policy, &head);
  if (!may_be_hit(view)) return start(arrival, view, found);
  parts_.cache.lookup({view.key, view.hash, head.fields, view.request_policy->vary, client}, found);
  // By the clock of after the lookup: what it has found may have come with this turn.
  if (is_plain_hit(view, found, runtime, parts_.loop.now())) {
    HitForm form = HitForm::kIdentity;
    if (runtime.compression) [[unlikely]] {
      form = choose_hit_form(view, *runtime.compression, parts_.coders, found);
    }
    if (form != HitForm::kUnknown) return Hit{form};
  }
  return start(arrival, view, found);
}

// At a listener that has settings of its own. Nothing: the request may go on.
std::optional<Intake::Outcome> Intake::check(const Arrival& arrival, const ListenerPolicy& policy,
                                             RequestView& view) {
  ClientIdentity& identity = arrival.identity;
  const net::Address& client = identity.client();
  const auto refuse = [&](Refusal refusal) {
    refusal.rule = view.rule;
    return Refuse{std::move(refusal)};
  };
  const AccessCheck access(policy, arrival.head, view, client);
  if (auto refusal = access.refuse_by_lists()) {
    parts_.stats.access_denied.add();
    return refuse(std::move(*refusal));
  }
  // Before a password is sent that all can read.
  if (auto refusal = access.redirect()) return refuse(std::move(*refusal));
  const http::FieldId field =
      view.route == nullptr ? http::FieldId::kProxyAuthorization : http::FieldId::kAuthorization;
  if (policy.credentials != nullptr && view.inside != nullptr) {
    if (!view.inside->has_logged_in) return refuse(no_login_inside());
  } else if (policy.credentials != nullptr) {
    auto login = identity.logins().check(
        {.loop = parts_.loop, .passwords = parts_.passwords, .stats = parts_.stats},
        {.policy = policy,
         .fields = arrival.head.fields,
         .field = field,
         .client = client,
         .failures = parts_.runtime->failed_logins});
    if (std::holds_alternative<LoginCheck::Waits>(login)) return Wait{};
    if (auto* refusal = std::get_if<Refusal>(&login)) return refuse(std::move(*refusal));
  }
  // Behind all that it may have to wait for: a request is counted once.
  if (const Nanoseconds wait = access.take_turn(parts_.loop.now()); wait.count() != 0) {
    parts_.stats.rate_limited.add();
    return refuse(too_many("rate-limit", wait, Refusal::Further::kMayStay));
  }
  // They were for us.
  if (policy.credentials != nullptr) arrival.head.fields.remove(field);
  view.user = identity.user();
  view.login = identity.login();
  return std::nullopt;
}

// A proxy that speaks for others is not counted.
bool Intake::take_seat(const Arrival& arrival, const RequestView& view) {
  const std::uint32_t limit = client_limit(*parts_.runtime->config.limits.transfers_per_client,
                                           parts_.allowed.connections_allowed());
  const net::Address& client = arrival.identity.client();
  if (limit == 0 || (view.policy != nullptr && view.policy->trusts(client))) return true;
  return arrival.seat.take(parts_.transfers, client, limit);
}

Intake::Outcome Intake::start(const Arrival& arrival, RequestView& view, const CacheView& found) {
  const Runtime& runtime = *parts_.runtime;
  const ClientIdentity& identity = arrival.identity;
  if (!take_seat(arrival, view)) {
    parts_.stats.transfers_refused.add();
    Refusal refusal = too_many("transfers-per-client", Nanoseconds(0), Refusal::Further::kMayStay);
    refusal.rule = view.rule;
    return Refuse{std::move(refusal)};
  }
  const bool is_told = runtime.config.log.request_id >= config::RequestIds::kForward;
  if (is_told && view.route != nullptr && view.request_id.empty()) {
    view.request_id = identity.request_id(ids_, view.policy, view.head);
  }
  parts_.inflight.prefetch_unshared(view.hash);
  auto request =
      RequestContext::make(parts_.runtime, view, arrival.text, identity.client(), identity.from());
  if (runtime.follows_requests) [[unlikely]] {
    std::string storage;
    log_step(request->request_id,
             {view.head->method_text, " ", runtime.redaction.url(view.head->target, storage),
              " of ", identity.client().to_string(), " on ", arrival.listener.name, ", ",
              found.object ? "stored" : "not in memory"});
  }
  if (view.head->method == http::Method::kConnect) {
    const bool is_opened = is_decrypted(*request, arrival.is_tls);
    return Tunnel{std::move(request), is_opened};
  }
  return Start{std::move(request)};
}

bool Intake::is_decrypted(const RequestContext& connect, bool is_tls) {
  const Runtime& runtime = *connect.runtime;
  // TLS within TLS is none of what a stream can do.
  if (runtime.interception == nullptr || is_tls) return false;
  // A circle is refused before any handshake inside it.
  if (is_forwarding_loop(connect)) return false;
  const http::Authority& authority = connect.target.authority;
  // A CONNECT that would be refused is refused as ever.
  const auto splice = splice_of(runtime, connect.client, lower_ascii(authority.host),
                                authority.port, parts_.loop.now());
  if (splice == Splice::kRejected) parts_.stats.intercepts_spliced.add();
  return splice == Splice::kNone;
}

Intake::Reply Intake::reply_to(const Refusal& refusal, const Refused& refused) {
  const Runtime& runtime = *parts_.runtime;
  const ListenerContext& listener = refused.listener;
  const ClientIdentity& identity = refused.identity;
  const http::RequestHead* const head = refused.view == nullptr ? nullptr : refused.view->head;
  Reply reply;
  RequestRecord& record = reply.record;
  if (head != nullptr) record.request_id = refused.view->request_id;
  if (runtime.identifies_all && record.request_id.empty()) {
    record.request_id = identity.request_id(ids_, runtime.policy(listener.index), head);
  }
  reply.text = server::reply_to(refusal, {.runtime = runtime,
                                          .listener = listener,
                                          .http_date = parts_.loop.http_date(),
                                          .request_id = record.request_id});
  if (head != nullptr) {
    if (head->method == http::Method::kHead) reply.text.body.clear();
    record.user = identity.user();
  }
  record.client = &identity.client();
  record.head = head;
  record.outcome = refusal.outcome;
  record.started = parts_.loop.now();
  record.status = refusal.status;
  record.body_bytes = reply.text.body.size();
  record.tls = identity.tls();
  record.intercepted = identity.inside() != nullptr;
  record.listener = listener.counts.get();
  record.rule = refusal.rule;
  record.detail = refusal.detail;
  record.listener_name = listener.name;
  if (head != nullptr) {
    note_refused_purge(runtime, parts_.stats, listener, *head, *record.client, record.detail);
  }
  return reply;
}

void Intake::record(const Reply& reply) { parts_.log.record(reply.record); }

}  // namespace encore::server

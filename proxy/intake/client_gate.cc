#include "proxy/intake/client_gate.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "proxy/net/proxy_header.h"

namespace encore::server {
namespace {

using Further = Refusal::Further;

// What a request names, as its key has it; hosts of those without one lie in `host`.
Named name_of(const http::RequestHead& head, const RequestView& view, std::string& host) {
  Named named{
      .method = head.method_text, .port = view.target.port(), .path_as_sent = view.target.path};
  host = plain_host(view.target.authority.host);
  named.host = host;
  // What the origin gets, whatever the key says.
  std::string_view uri = view.asked;
  if (uri.empty() && !view.key.empty()) uri = view.key.substr(kRealmBytes);
  if (uri.empty()) {
    if (head.method == http::Method::kConnect) return named;
    named.path = view.target.form == http::TargetForm::kAsterisk ? "*" : view.target.path;
    return named;
  }
  named.path = uri.substr(view.uri.path);
  named.path = named.path.substr(0, named.path.find('?'));
  return named;
}

// The same URL by https.
Refusal to_https(std::uint32_t port, const http::RequestHead& head, const RequestView& view) {
  const http::Target& target = view.target;
  if (target.authority.host.empty()) {
    return {.status = 400, .detail = "no-host", .text = "The request names no host."};
  }
  constexpr std::uint32_t kUsualPort = 443;
  const bool v6 = target.authority.host.contains(':');
  std::string fields = v6 ? "Location: https://[" : "Location: https://";
  fields += lower_ascii(target.authority.host);
  if (v6) fields += ']';
  if (port != kUsualPort) fields += ":" + std::to_string(port);
  fields.append(target.form == http::TargetForm::kAsterisk ? "/" : target.path);
  if (target.has_query) fields.append("?").append(target.query);
  const bool plain = head.method == http::Method::kGet || head.method == http::Method::kHead;
  return {.status = plain ? 301 : 308,
          .outcome = Outcome::kDenied,
          .detail = "redirect-https",
          .text = "The same is to be had by https.",
          .fields = fields + "\r\n"};
}

// Inside a CONNECT nobody logs in: that was its own to do, where it was asked for.
Refusal look_inside(const Inside& inside) {
  if (inside.has_logged_in) return {};
  return {.status = 403,
          .outcome = Outcome::kDenied,
          .detail = "no-credentials",
          .text = "Connect again, with credentials."};
}

}  // namespace

Refusal too_many(std::string_view detail, Nanoseconds wait) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  return {.status = 429,
          .outcome = Outcome::kDenied,
          .detail = detail,
          .text = "There are too many requests.",
          .fields = "Retry-After: " + std::to_string(std::max<std::int64_t>(seconds, 1)) + "\r\n"};
}

std::string_view refused_by_lists(const ListenerPolicy& policy, const http::RequestHead& head,
                                  const RequestView& view, const net::Address& client) {
  std::string host;
  const Named named = name_of(head, view, host);
  return policy.access.may_come(client) ? policy.access.refusal(named) : "client-not-allowed";
}

std::string_view request_id(RequestIds& ids, const ClientGate* gate, const ListenerPolicy* policy,
                            const http::RequestHead* head) {
  if (head == nullptr || gate == nullptr || policy == nullptr || !policy->trusts(gate->from())) {
    return ids.make();
  }
  std::string_view named;
  std::size_t lines = 0;
  for (const http::Field& field : head->fields) {
    if (!http::equals_lower(field.name, kRequestIdName)) continue;
    named = field.value;
    ++lines;
  }
  return lines == 1 && is_request_id(named) ? named : ids.make();
}

std::optional<Refusal> ClientGate::check(const LoginServices& services,
                                         const ListenerPolicy& policy, http::RequestHead& head,
                                         const RequestView& view, const net::Address& client) {
  const std::string_view why = refused_by_lists(policy, head, view, client);
  if (!why.empty()) {
    services.stats.access_denied.add();
    const int status = status_of_refusal(why);
    return Refusal{.status = status,
                   .outcome = status == 400 ? Outcome::kBadRequest : Outcome::kDenied,
                   .detail = why,
                   .text = "The request is not accepted.",
                   .further = policy.access.may_come(client) ? Further::kMayStay : Further::kEnds};
  }
  // Before a password is sent that all can read.
  if (policy.https_port != 0 && !view.secure && !view.purges) {
    return to_https(policy.https_port, head, view);
  }
  if (policy.credentials != nullptr) {
    auto refusal = view.inside == nullptr ? log_in(services, policy, head, view, client)
                                          : look_inside(*view.inside);
    if (!refusal || refusal->status != 0) return refusal;
  }
  // Behind all that it may have to wait for: a request is counted once.
  if (policy.rates != nullptr) {
    std::string host;
    const Named named = name_of(head, view, host);
    const Nanoseconds wait =
        policy.rates->take(policy.name, named, head.fields, client, services.loop.now());
    if (wait.count() != 0) {
      services.stats.rate_limited.add();
      Refusal refusal = too_many("rate-limit", wait);
      refusal.further = Further::kMayStay;
      return refusal;
    }
  }
  // They were for us.
  if (policy.credentials != nullptr) {
    head.fields.remove(view.route == nullptr ? http::FieldId::kProxyAuthorization
                                             : http::FieldId::kAuthorization);
  }
  return Refusal{};
}

ClientGate::~ClientGate() {
  if (check_ != nullptr) check_->gate = nullptr;
}

// Of a password that is not remembered, on another thread.
ClientGate::Found ClientGate::look_at_password(const LoginServices& services,
                                               const Credentials& credentials, const Login& login,
                                               const std::string& whose) {
  const Credentials::Hash hash = credentials.hash_of(login.name);
  if (hash.text == nullptr) return Found::kUnknown;
  const net::Digest id = services.passwords.id_of(login, *hash.text);
  const MonotonicTime now = services.loop.now();
  const std::shared_ptr<TokenBuckets> failures = services.runtime.failed_logins;
  if (check_ != nullptr && check_->id == id) {
    if (!check_->right) return Found::kWaits;
    const bool right = *check_->right;
    check_.reset();
    return right ? Found::kRight : Found::kWrong;
  }
  if (hash.known && services.passwords.is_remembered(id, now)) return Found::kRight;
  if (check_ != nullptr) check_->gate = nullptr;
  check_ = std::make_shared<Check>(Check{.gate = this, .id = id, .right = {}});
  // `counted`: where it counts as wrong until it is known to be right; null: nowhere.
  const auto tell = [&](std::shared_ptr<TokenBuckets> counted) {
    return [check = check_, &loop = services.loop, counted = std::move(counted),
            who = whose](bool right) mutable {
      loop.post([check = std::move(check), &loop, counted = std::move(counted),
                 who = std::move(who), right] {
        if (right && counted != nullptr) counted->give_back(who, loop.now());
        if (check->gate == nullptr) return;
        check->right = right;
        check->gate->resume_();
      });
    };
  };
  if (services.passwords.join(whose, id, tell(nullptr))) return Found::kWaits;
  if (failures != nullptr && failures->take(whose, now).count() != 0) {
    check_.reset();
    return Found::kTooMany;
  }
  const bool taken = services.passwords.check({.client = whose,
                                               .login = login,
                                               .hash = *hash.text,
                                               .known = hash.known,
                                               .done = tell(failures)});
  if (taken) return Found::kWaits;
  if (failures != nullptr) failures->give_back(whose, now);
  check_.reset();
  return Found::kBusy;
}

ClientGate::Found ClientGate::look_at(const LoginServices& services, const Credentials& credentials,
                                      Login& login, const net::Address& client) {
  const auto network = client.network_bytes();
  const std::string whose(reinterpret_cast<const char*>(network.data()), network.size());
  if (login.scheme == Login::Scheme::kBasic && credentials.has_users()) {
    return look_at_password(services, credentials, login, whose);
  }
  if (login.scheme != Login::Scheme::kBearer || !credentials.has_tokens()) return Found::kUnknown;
  // A token is looked at whatever others at this address have tried: that costs next to nothing,
  // and nobody guesses 128 bits, however often he may.
  if (const std::string* name = credentials.name_of_token(login.secret)) {
    login.name = *name;
    return Found::kRight;
  }
  TokenBuckets* const failures = services.runtime.failed_logins.get();
  const bool too_many =
      failures != nullptr && failures->take(whose, services.loop.now()).count() != 0;
  return too_many ? Found::kTooMany : Found::kWrong;
}

std::optional<Refusal> ClientGate::log_in(const LoginServices& services,
                                          const ListenerPolicy& policy, http::RequestHead& head,
                                          const RequestView& view, const net::Address& client) {
  const bool forward = view.route == nullptr;
  const auto field = forward ? http::FieldId::kProxyAuthorization : http::FieldId::kAuthorization;
  Login login;
  if (head.fields.count(field) == 1) login = read_login(head.fields.value(field));
  const Found found = look_at(services, *policy.credentials, login, client);
  switch (found) {
    case Found::kRight:
      services.stats.logins_right.add();
      login_ = policy.credentials->mark_of(login);
      user_ = std::move(login.name);
      return Refusal{};
    case Found::kWaits:
      return std::nullopt;
    case Found::kTooMany:
      services.stats.logins_limited.add();
      return too_many("failed-logins", std::chrono::minutes(1));
    case Found::kBusy:
      services.stats.logins_limited.add();
      return Refusal{.status = 503,
                     .outcome = Outcome::kDenied,
                     .detail = "logins-busy",
                     .text = "Too many log in.",
                     .fields = "Retry-After: 1\r\n"};
    case Found::kWrong:
    case Found::kUnknown:
      break;
  }
  const bool wrong = head.fields.has(field);
  if (wrong) services.stats.logins_failed.add();
  return Refusal{.status = forward ? 407 : 401,
                 .outcome = Outcome::kDenied,
                 .detail = wrong ? "wrong-credentials" : "no-credentials",
                 .text = "Credentials are needed.",
                 .fields = policy.challenge,
                 .further = Further::kMayStay};
}

ClientGate::Intake ClientGate::take_header(const ListenerPolicy& policy, std::string_view input) {
  ENCORE_CHECK(awaits_header_, "a PROXY header is taken once");
  if (!policy.trusted.empty() && !policy.trusts(from_)) return {};
  net::ProxyHeader header;
  switch (net::parse_proxy_header(input, header)) {
    case net::ProxyHeaderStatus::kIncomplete:
      return {.header = Header::kIncomplete};
    case net::ProxyHeaderStatus::kBad:
      return {};
    case net::ProxyHeaderStatus::kComplete:
      break;
  }
  awaits_header_ = false;
  secure_ = header.secure;
  if (header.source) from_ = believed(*header.source, from_);
  return {.header = Header::kTaken, .used = header.size};
}

net::Address ClientGate::identify(const ListenerPolicy* policy, const http::Fields& fields,
                                  RequestView& view) {
  user_.clear();
  login_.clear();
  Sender sender{.client = from_};
  if (policy != nullptr) sender = find_sender(*policy, from_, fields);
  view.policy = policy;
  view.through_proxy = sender.through_proxy;
  view.secure = sender.through_proxy ? sender.secure : view.secure || secure_;
  return sender.client;
}

}  // namespace encore::server

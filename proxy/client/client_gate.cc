#include "proxy/client/client_gate.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "proxy/net/proxy_header.h"

namespace encore::server {
namespace {

// What a request names, as its key has it; hosts of those without one lie in `host`.
Named name_of(const http::RequestHead& head, const RequestView& view, std::string& host) {
  Named named{.method = head.method_text, .port = view.target.port()};
  host = plain_host(view.target.authority.host);
  named.host = host;
  if (view.key.empty()) {
    if (head.method == http::Method::kConnect) return named;
    named.path = view.target.form == http::TargetForm::kAsterisk ? "*" : view.target.path;
    return named;
  }
  named.path = view.key.substr(kRealmBytes + view.uri.path);
  named.path = named.path.substr(0, named.path.find('?'));
  return named;
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

Refusal ClientGate::check(const ListenerPolicy& policy, const http::RequestHead& head,
                          const RequestView& view, const net::Address& client, MonotonicTime now,
                          WorkerStats& stats) {
  std::string host;
  const Named named = name_of(head, view, host);
  std::string_view why = policy.access.refusal(named);
  if (!policy.access.may_come(client)) why = "client-not-allowed";
  if (!why.empty()) {
    stats.access_denied.add();
    return {.status = 403,
            .outcome = Outcome::kDenied,
            .detail = why,
            .text = "The request is not accepted."};
  }
  if (policy.rates == nullptr) return {};
  const Nanoseconds wait = policy.rates->take(named, head.fields, client, now);
  if (wait.count() == 0) return {};
  stats.rate_limited.add();
  return too_many("rate-limit", wait);
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
                                  RequestView& view) const {
  Sender sender{.client = from_};
  if (policy != nullptr) sender = find_sender(*policy, from_, fields);
  view.policy = policy;
  view.through_proxy = sender.through_proxy;
  view.secure = sender.through_proxy ? sender.secure : secure_;
  return sender.client;
}

}  // namespace encore::server

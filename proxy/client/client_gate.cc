#include "proxy/client/client_gate.h"

#include "base/check.h"
#include "proxy/net/proxy_header.h"

namespace encore::server {

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

#include "proxy/intake/client_identity.h"

#include "base/check.h"
#include "proxy/net/proxy_header.h"
#include "proxy/settings/effective_client.h"

namespace encore::server {

ClientIdentity::HeaderTaken ClientIdentity::take_header(const ListenerPolicy& policy,
                                                        std::string_view input) {
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
  if (header.source) client_ = from_ = believed(*header.source, from_);
  return {.header = Header::kTaken, .used = header.size};
}

void ClientIdentity::identify_by(const ListenerPolicy* policy, const http::Fields& fields,
                                 RequestView& view) {
  view.policy = policy;
  has_more_ = true;
  // The client is known since the CONNECT; fields inside that name another are its own word.
  if (inside_ != nullptr) {
    view.inside = inside_.get();
    return;
  }
  if (logins_ != nullptr) logins_->clear();
  if (policy == nullptr) {
    client_ = from_;
    view.secure = view.secure || secure_;
    return;
  }
  const EffectiveClient sender = find_effective_client(*policy, from_, fields);
  view.through_proxy = sender.through_proxy;
  view.secure = sender.through_proxy ? sender.secure : view.secure || secure_;
  client_ = sender.client;
}

bool ClientIdentity::is_still_decrypted(const Runtime& runtime, MonotonicTime now) {
  ENCORE_CHECK(inside_ != nullptr, "a CONNECT is decrypted");
  if (decrypted_by_ == runtime.number) return true;
  if (runtime.interception == nullptr) return false;
  const Splice splice =
      runtime.interception->at_connect(client_, inside_->host, inside_->port, false, now);
  if (splice != Splice::kNone && splice != Splice::kRejected) return false;
  decrypted_by_ = runtime.number;
  return true;
}

std::string_view ClientIdentity::request_id(RequestIds& ids, const ListenerPolicy* policy,
                                            const http::RequestHead* head) const {
  const bool is_trusted =
      head != nullptr && inside_ == nullptr && policy != nullptr && policy->trusts(from_);
  if (!is_trusted) return ids.make();
  std::string_view named;
  std::size_t lines = 0;
  for (const http::Field& field : head->fields) {
    if (!http::equals_lower(field.name, kRequestIdName)) continue;
    named = field.value;
    ++lines;
  }
  return lines == 1 && is_request_id(named) ? named : ids.make();
}

}  // namespace encore::server

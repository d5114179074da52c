#include "proxy/intake/access_check.h"

namespace encore::server {

AccessCheck::AccessCheck(const ListenerPolicy& policy, const http::RequestHead& head,
                         const RequestView& view, const net::Address& client)
    : policy_(policy),
      head_(head),
      view_(view),
      client_(client),
      host_(plain_host(view.target.authority.host)),
      named_{.method = head.method_text,
             .host = host_,
             .port = view.target.port(),
             .path_as_sent = view.target.path} {
  // The URL that the origin gets, whatever the key says.
  std::string_view uri = view.asked;
  if (uri.empty() && !view.key.empty()) uri = view.key.substr(kRealmBytes);
  if (!uri.empty()) {
    named_.path = uri.substr(view.uri.path);
    named_.path = named_.path.substr(0, named_.path.find('?'));
  } else if (head.method != http::Method::kConnect) {
    named_.path = view.target.form == http::TargetForm::kAsterisk ? "*" : view.target.path;
  }
}

std::string_view AccessCheck::refused_by_lists() const {
  return policy_.access.allows_client(client_) ? policy_.access.refusal(named_)
                                               : "client-not-allowed";
}

std::optional<Refusal> AccessCheck::refuse_by_lists() const {
  const std::string_view why = refused_by_lists();
  if (why.empty()) return std::nullopt;
  return refused_by_access(why, policy_.access.allows_client(client_) ? Refusal::Further::kMayStay
                                                                      : Refusal::Further::kEnds);
}

std::optional<Refusal> AccessCheck::redirect() const {
  if (policy_.https_port == 0 || view_.secure || view_.purges) return std::nullopt;
  return moved_to_https(policy_.https_port, head_, view_.target);
}

Nanoseconds AccessCheck::take_turn(MonotonicTime now) const {
  if (policy_.rates == nullptr) return Nanoseconds(0);
  return policy_.rates->take(policy_.name, named_, head_.fields, client_, now);
}

}  // namespace encore::server

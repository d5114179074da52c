// Access checks of one request at a listener that has a policy, by whom it comes from, what it
// names and how often. Pure but for the limits' counts, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "proxy/http/message.h"
#include "proxy/intake/refusal.h"
#include "proxy/net/address.h"
#include "proxy/request/request_view.h"
#include "proxy/settings/access.h"
#include "proxy/settings/listener_policy.h"

namespace encore::server {

class AccessCheck {
 public:
  // All are borrowed. REQUIRES: `view` is made.
  AccessCheck(const ListenerPolicy& policy, const http::RequestHead& head, const RequestView& view,
              const net::Address& client);
  AccessCheck(const AccessCheck&) = delete;
  AccessCheck& operator=(const AccessCheck&) = delete;

  // The reason for which the lists refuse it, as "host-not-allowed"; empty: they do not.
  std::string_view refused_by_lists() const;
  std::optional<Refusal> refuse_by_lists() const;
  // A redirection of clients that ask by http where they are to ask by https.
  std::optional<Refusal> redirect() const;
  // The time to wait for the limits' sake; zero: the request is counted, and may go on.
  Nanoseconds take_turn(MonotonicTime now) const;

 private:
  const ListenerPolicy& policy_;
  const http::RequestHead& head_;
  const RequestView& view_;
  const net::Address& client_;
  std::string host_;  // host of one that has no key
  Named named_;
};

}  // namespace encore::server

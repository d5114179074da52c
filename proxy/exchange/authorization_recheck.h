// AuthorizationRecheck: where each client is asked for at its origin, whether this one may have the
// stored object (a rule says so). Confined to its worker.
#pragma once

#include <memory>

#include "base/time.h"
#include "proxy/exchange/authorization_cache.h"
#include "proxy/request/request_context.h"
#include "proxy/transfer/response.h"

namespace encore::server {

class AuthorizationRecheck {
 public:
  // Borrowed; outlives it.
  explicit AuthorizationRecheck(AuthorizationCache& rechecks) : rechecks_(rechecks) {}

  // The origin is to be asked first.
  bool is_needed(const RequestContext& request, MonotonicTime now) const;
  void ask() { state_ = State::kAsked; }
  bool is_asked() const { return state_ == State::kAsked; }
  // The origin has answered. True: the client may have it, from here on without asking again.
  bool take(const std::shared_ptr<const RequestContext>& request, const SharedResponse& answer,
            MonotonicTime now);

 private:
  enum class State : std::uint8_t { kNotAsked, kAsked, kRefused, kGiven };
  AuthorizationCache& rechecks_;
  State state_ = State::kNotAsked;
};

}  // namespace encore::server

// How far a fetch has come: one state, changed only as may_follow() says, and what a panic report
// says of it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "proxy/request/request_context.h"

namespace encore::server {

class FetchState {
 public:
  enum class At : std::uint8_t { kConnecting, kSending, kHead, kBody, kRest, kEnded };

  // `request` outlives it.
  explicit FetchState(const RequestContext& request)
      : activity_(doing_for(request, "a fetch", name_of(at_))) {}

  // REQUIRES: may_follow(*this, next).
  void go(At next) {
    ENCORE_CHECK(may_follow(at_, next), "the states of a fetch follow one another");
    at_ = next;
    activity_.step = name_of(next);
  }
  // NOLINTNEXTLINE(google-explicit-constructor): it is read as what it holds.
  operator At() const { return at_; }
  const ThreadActivity& activity() const { return activity_; }

  static constexpr bool may_follow(At at, At next) {
    switch (next) {
      case At::kConnecting:  // again, before anything of a response was used
        return at == At::kConnecting || at == At::kSending || at == At::kHead;
      case At::kSending:
        return at == At::kConnecting;
      case At::kHead:
        return at == At::kSending;
      case At::kBody:  // perhaps before all of the request is sent
        return at == At::kSending || at == At::kHead;
      case At::kRest:  // the response is complete, and not all of the request is sent
        return at == At::kBody;
      case At::kEnded:
        return at != At::kEnded;
    }
    return false;
  }

  static constexpr std::string_view name_of(At at) {
    constexpr std::array<std::string_view, 6> kNames = {"connecting",       "sending the request",
                                                        "reading the head", "reading the body",
                                                        "sending the rest", "ended"};
    return kNames[static_cast<std::size_t>(at)];
  }

 private:
  At at_ = At::kConnecting;
  ThreadActivity activity_;
};

}  // namespace encore::server

// Interim responses (RFC 9110 15.2, RFC 8297) and Expect: 100-continue (RFC 9110 10.1.1). Pure,
// thread-safe.
#pragma once

#include <cstdint>

#include "proxy/http/message.h"

namespace encore::http {

constexpr bool is_interim(unsigned status) noexcept { return status >= 100 && status < 200; }

enum class InterimAction : std::uint8_t {
  kForward,
  kDrop,
  kSwitch,  // 101: both sides become a tunnel
  kBad,     // 101 that nobody asked for: 502
};

struct InterimContext {
  Version client = Version::kHttp11;
  bool continue_sent = false;  // we answered Expect with a 100 of our own
  bool asked_upgrade = false;  // the request we sent on asked for an upgrade
};

// Returns the treatment of a 1xx. HTTP/1.0 clients receive none, others every one (RFC 9110 15.2: a
// proxy must forward them) except a 100 that we sent ourselves.
InterimAction interim_action(unsigned status, const InterimContext& context) noexcept;

enum class Expectation : std::uint8_t {
  kNone,
  kContinue,  // an HTTP/1.1 client waits for 100 before it sends its body
  kUnknown,   // 417
};
Expectation expectation(const RequestHead& request) noexcept;

}  // namespace encore::http

// The detail of a response that admission accepted and that was not stored. Pure.
#pragma once

#include <string_view>

#include "proxy/observe/outcome.h"

namespace encore::server {

// Admission knows the key; whether the response can be stored shows later, or never could be.
inline constexpr std::string_view kNotStored = "not-stored";
// A newer response, or a purge, came while it was on its way.
inline constexpr std::string_view kOvertaken = "overtaken";

constexpr Outcome unless_stored(Outcome admitted) {
  const bool was_let_in = admitted == Outcome::kSecondRequest || admitted == Outcome::kAdmitted;
  return was_let_in ? Outcome::kUncacheable : admitted;
}

}  // namespace encore::server

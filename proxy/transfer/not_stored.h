// The details of responses that could be stored otherwise, and were not. Pure.
#pragma once

#include <string_view>

#include "proxy/observe/outcome.h"

namespace encore::server {

// Admission knows the key; whether the response can be stored shows later, or never could be.
inline constexpr std::string_view kNotStored = "not-stored";
// A newer response, or a purge, came while it was on its way.
inline constexpr std::string_view kOvertaken = "overtaken";

// Its head, with the tags that it can be purged by, is larger than the store takes.
inline constexpr std::string_view kLargeHead = "large-head";

constexpr Outcome unless_stored(Outcome admitted) {
  const bool was_let_in = admitted == Outcome::kSecondRequest || admitted == Outcome::kAdmitted ||
                          admitted == Outcome::kProbation || admitted == Outcome::kFill ||
                          admitted == Outcome::kParentHint;
  return was_let_in ? Outcome::kUncacheable : admitted;
}

}  // namespace encore::server

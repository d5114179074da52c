// Why a name has no addresses. Values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace encore::net {

enum class ResolveOutcome : std::uint8_t {
  kNotFound,       // no such name, or a name without addresses
  kTimeout,        // no answer from any server
  kRefused,        // SERVFAIL, REFUSED, nobody listens, or an answer that makes no sense
  kBadName,        // not a host name: empty, too long, bad characters
  kLimit,          // too many lookups are in progress: in all, or for this client
  kNoDescriptors,  // this process has no descriptor left to ask with
};
std::string_view to_string(ResolveOutcome outcome);

struct ResolveFailure {
  ResolveOutcome outcome = ResolveOutcome::kNotFound;
  std::string message;  // "example.invalid: no such name"
};

}  // namespace encore::net

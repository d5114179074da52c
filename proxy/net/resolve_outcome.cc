#include "proxy/net/resolve_outcome.h"

namespace encore::net {

std::string_view to_string(ResolveOutcome outcome) {
  switch (outcome) {
    case ResolveOutcome::kNotFound:
      return "not-found";
    case ResolveOutcome::kTimeout:
      return "timeout";
    case ResolveOutcome::kRefused:
      return "refused";
    case ResolveOutcome::kBadName:
      return "bad-name";
    case ResolveOutcome::kLimit:
      return "limit";
    case ResolveOutcome::kNoDescriptors:
      return "no-descriptors";
  }
  return "unknown";
}

}  // namespace encore::net

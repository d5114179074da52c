// A purge's targets and its result. Values, thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "proxy/settings/ban.h"

namespace encore::server {

struct PurgeOrder {
  std::vector<std::string> urls = {};      // absolute
  std::vector<std::string> prefixes = {};  // likewise
  std::vector<std::string> tags = {};
  bool all = false;  // all stored objects
  bool soft = false;
  bool dry_run = false;  // only counted, and nothing changes
  // For requests that purge: keys with their realms, and the target of a ban.
  std::vector<std::string> keys = {};
  std::optional<BanOrder> ban = {};
  std::string token = {};  // the count's (purge_token.h); empty: it was not counted
};

// How many stored responses there were; variants count each. On disk alone, what a prefix or a tag
// is of goes when it is read, and is not counted. It is durable there when this returns; an error
// says why it is not.
struct PurgeResult {
  std::uint64_t count = 0;
  bool lazily = false;  // more may go, as it is read
  Result<void> durable = {};
  std::string refusal = {};  // not empty: nothing was purged, and why
};

}  // namespace encore::server

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
  bool validate = false;  // with `all` and `soft`: no window of staleness serves what became stale
  bool dry_run = false;   // only counted, and nothing changes
  // For requests that purge: keys with their realms, and the target of a ban.
  std::vector<std::string> keys = {};
  std::optional<BanOrder> ban = {};
  std::string token = {};  // the count's (purge_token.h); empty: it was not counted
};

// The purge of a node that may have missed purges: which ones is unknown, so nothing that is stored
// is served again until its origin says that it is valid (docs/decisions/0608).
inline PurgeOrder validate_all() { return {.all = true, .soft = true, .validate = true}; }

// Result of a purge on the other nodes of a fleet.
struct FleetPurge {
  bool is_published = false;  // the engine has it; else it waits, and is published later
  bool is_dropped = false;    // too many wait: the nodes purge everything instead, later
  std::vector<std::string> confirmed = {};    // nodes that have done it, by name
  std::vector<std::string> unconfirmed = {};  // nodes that had not in fleet.wait
};

// How many stored responses there were; variants count each. On disk alone, what a prefix or a tag
// is of goes when it is read, and is not counted. It is durable there when this returns; an error
// says why it is not.
struct PurgeResult {
  std::uint64_t count = 0;
  bool lazily = false;  // more may go, as it is read
  Result<void> durable = {};
  std::string refusal = {};              // not empty: nothing was purged, and why
  std::optional<FleetPurge> fleet = {};  // nothing: this node is in none
};

}  // namespace encore::server

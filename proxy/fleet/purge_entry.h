// Purges as entries of the stream: pairs of a field's name and its value, which operators can read
// and write (`XADD encore:purges * tag article-7`). Pure functions. Entries come from an engine
// that is not trusted: all is bounded and checked (docs/decisions/0604).
//
//   Publisher: node, instance, number (its name, its process, the purge's number there).
//   Targets: url, prefix, tag, key, each as often as there are.
//   Target of a ban: ban-host, ban-url, ban-type, ban-tag, ban-forward.
//   Flags, "1": all, soft, validate; mark: it purges nothing, and renews the positions of the
//   nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "proxy/settings/purge_order.h"

namespace encore::fleet {

using Fields = std::vector<std::string>;  // name, value, name, value, ...

inline constexpr std::size_t kEntryBytesMax = std::size_t{2} << 20U;
inline constexpr std::size_t kEntryFieldsMax = 65536;

struct PurgeEntry {
  std::string node;          // empty: not a node has written it
  std::string instance;      // of the process; empty with `node` empty
  std::uint64_t number = 0;  // the purges of one process are numbered in their order, from 1
  bool is_mark = false;      // no purge
  server::PurgeOrder order = {};
};

// Errors: more than kEntryBytesMax or kEntryFieldsMax. REQUIRES: no dry run.
Result<Fields> encode(const PurgeEntry& entry);
// Errors: beyond the bounds, an unknown field, a value that its field cannot have, no target.
Result<PurgeEntry> decode(std::span<const std::string> fields);
// True if a node has written it, by its fields alone: one that is not understood may be a purge of
// a later version.
bool is_of_a_node(std::span<const std::string> fields);

// Joins purges that may be done together without another result: at most one of each softness,
// and one for each ban. The more objects a purge checks, the more is won: one pass does for all.
std::vector<server::PurgeOrder> merged(std::span<const server::PurgeOrder> orders);

}  // namespace encore::fleet

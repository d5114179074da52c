// Position: the last entry of the stream that a node has applied, as it is kept with its disks, and
// the decision whether the stream still leads on from there. Pure. Why the entry itself has to be
// there: docs/decisions/0601.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "proxy/fleet/stream_id.h"

namespace encore::fleet {

struct Position {
  StreamId id;
  std::string stream;              // key of the stream
  std::vector<std::string> disks;  // that it is of, by their identities, in their order
  friend bool operator==(const Position&, const Position&) = default;
};

std::string encode(const Position& position);
// Errors: a text of another form.
Result<Position> decode_position(std::string_view text);

// Facts of the stream in the engine.
struct StreamFacts {
  bool exists = false;
  StreamId last = {};                       // the highest that it ever had
  std::uint64_t length = 0;                 // entries
  std::optional<std::uint64_t> added = {};  // ever; nothing: the engine is older than 7.0
  bool has_position = false;                // the entry of the position is there
};

// True if no entry behind the position may be missing.
bool is_unbroken(const StreamId& position, const StreamFacts& facts);

}  // namespace encore::fleet

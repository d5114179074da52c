// StreamId: the place of an entry in a stream of the engine. A value.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace encore::fleet {

struct StreamId {
  std::uint64_t ms = 0;  // by the engine's clock, which never goes back within a stream
  std::uint64_t sequence = 0;
  friend auto operator<=>(const StreamId&, const StreamId&) = default;
};

// Parses "1700000000000-3". Nothing: another form, or a number above 64 bits.
std::optional<StreamId> parse_stream_id(std::string_view text);
std::string to_string(const StreamId& id);

}  // namespace encore::fleet

// Priority: how soon a response is wanted compared with others of its connection (RFC 9218 4).
// Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

namespace encore::h2 {

struct Priority {
  static constexpr std::uint8_t kUrgencyMax = 7;
  std::uint8_t urgency = 3;  // 0 goes first
  // Streams of one urgency take turns. RFC 9218's default is false; a client that says nothing at
  // all is better off with turns, for it may have a download next to calls (docs/decisions/0472).
  bool is_incremental = true;
  friend bool operator==(const Priority&, const Priority&) = default;
};

// Reads a Priority field, or the value of a PRIORITY_UPDATE frame. A parameter that is not there
// has RFC 9218's default; a malformed value says nothing, as if there were no field.
Priority parse_priority(std::string_view value);

}  // namespace encore::h2

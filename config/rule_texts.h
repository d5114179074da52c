// Parses the texts of a [[rule]]. Pure functions and values, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"

namespace encore::config {

// "404=10s", "5xx=1s", "400-499=30s"; or "10s" alone, which stands for statuses that may be kept
// without a word of the origin's (first and last are 0 then).
struct StatusLife {
  std::uint32_t first = 0;  // closed
  std::uint32_t last = 0;
  Nanoseconds life{};
  bool is_usual() const { return first == 0; }
  friend bool operator==(const StatusLife&, const StatusLife&) = default;
};
// Errors: not of these forms, a status outside 400 .. 599, no duration.
Result<StatusLife> parse_status_life(std::string_view text);

// Which parameters of a query belong to the key: "all", "none", "only:a,b", "except:a,b". A name
// may end with '*'.
struct KeyQuery {
  enum class Kind : std::uint8_t { kAll, kNone, kOnly, kExcept };
  Kind kind = Kind::kAll;
  std::vector<std::string> names = {};
  friend bool operator==(const KeyQuery&, const KeyQuery&) = default;
};
Result<KeyQuery> parse_key_query(std::string_view text);

// Treatment of a request's Cookie: "bypass", "ignore", "key:NAME" (or several, "key:a,b").
struct Cookies {
  enum class Kind : std::uint8_t { kBypass, kIgnore, kKey };
  Kind kind = Kind::kIgnore;
  std::vector<std::string> names = {};
  friend bool operator==(const Cookies&, const Cookies&) = default;
};
Result<Cookies> parse_cookies(std::string_view text);

// "Name: value". Errors: no name, a value with control characters, a field that frames messages or
// belongs to one connection.
struct FieldLine {
  std::string name;
  std::string value;
  friend bool operator==(const FieldLine&, const FieldLine&) = default;
};
Result<FieldLine> parse_field_line(std::string_view text);

}  // namespace encore::config

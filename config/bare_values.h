// Values of a TOML text that lack the quotes that they need: memory = 1GiB. Finds them at the place
// where the parser has failed, and writes them in the correct form. Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace encore::config {

// "key = value" of a text.
struct Assignment {
  std::string section;      // "cache"; empty: none, the key stands in front of all sections
  std::size_t element = 0;  // index in a section that is a list
  std::string key;
  std::size_t begin = 0;  // begin of the value, which goes to `end`, without blanks and comments
  std::size_t end = 0;
};
// The one that the place lies in; nothing: it lies in none.
std::optional<Assignment> assignment_at(std::string_view text, std::size_t place);

// True if a text is a value as it stands: a number, a date, true.
using IsValue = std::function<bool(std::string_view)>;
// The value with quotes around what needs them, also within lists and tables. Nothing: it cannot be
// read even so.
std::optional<std::string> with_quotes(std::string_view value, const IsValue& is_value);

}  // namespace encore::config

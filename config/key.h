// Key: what the schema says of one key, and a value on its way between text and struct. Constant
// data and values, thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"

namespace encore::config {

enum class Kind : std::uint8_t {
  kBool,
  kInteger,
  kReal,
  kBytes,
  kDuration,
  kText,
  kChoice,
  kTextList,
  kIntegerList
};

// A value on its way between text and struct. Canonical (what accept() returns and Key::get gives):
// kInteger, kBytes, kDuration (nanoseconds) and kChoice (number of the choice) are std::int64_t.
// As written, kBytes and kDuration may also be a string, kChoice is one. Nothing: what the struct
// has is not set, and the rest of the config holds; never written.
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>,
                           std::vector<std::int64_t>, std::monostate>;

inline bool is_unset(const Value& value) { return std::holds_alternative<std::monostate>(value); }

// Closed, in the kind's own unit: bytes, nanoseconds, a count.
struct Range {
  double min = 0;
  double max = 0;
};

// A change takes effect by a reload, by an upgrade (in which no request fails) or by a new start.
enum class Apply : std::uint8_t { kReload, kUpgrade, kRestart };

struct Key {
  std::string_view name;
  Kind kind = Kind::kText;
  std::string_view doc;         // sentences, markdown
  Range range{};                // numbers, and the elements of kIntegerList
  bool zero_is_off = false;     // 0 is accepted below range.min too
  bool power_of_two = false;    // but for a 0 that is off
  bool secret = false;          // never printed
  bool one_will_do = false;     // for a text list: one text stands for a list of it
  bool number_will_do = false;  // for a text: a whole number stands for its digits
  bool tables = false;          // for a text list: each is a table, a line "name=value" a key
  bool required = false;        // in each element of a list: there is no default
  Apply apply = Apply::kReload;
  std::string_view not_reloaded{};  // unless kReload: the reason, a clause
  std::string_view accepted{};      // for texts: the form that item_check accepts
  std::span<const std::string_view> choices{};
  // For texts and text lists: returns the text in its stored form, or the reason why it is wrong.
  Result<std::string> (*item_check)(std::string_view) = nullptr;
  // From and to the struct of the section. REQUIRES: a canonical value of the kind.
  Value (*get)(const void*) = nullptr;
  void (*set)(void*, const Value&) = nullptr;
};

}  // namespace encore::config

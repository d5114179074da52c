// The one table of everything that can be configured: name, kind, range, meaning. The parser,
// --set, --dump-config, docs/CONFIG.md and the check of a reload all read it. Constant data,
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "config/config.h"

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
// As written, kBytes and kDuration may also be a string, kChoice is one.
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>,
                           std::vector<std::int64_t>>;

// Closed, in the kind's own unit: bytes, nanoseconds, a count.
struct Range {
  double min = 0;
  double max = 0;
};

enum class Apply : std::uint8_t { kReload, kRestart };

struct Key {
  std::string_view name;
  Kind kind = Kind::kText;
  std::string_view doc;          // sentences, markdown
  Range range{};                 // numbers, and the elements of kIntegerList
  bool zero_is_off = false;      // 0 is accepted below range.min too
  bool power_of_two = false;     // but for a 0 that is off
  bool secret = false;           // never printed
  Apply apply = Apply::kReload;  // when a change takes effect
  std::string_view accepted{};   // of texts: what item_check accepts
  std::span<const std::string_view> choices{};
  // Of texts and text lists: gives the text as it is kept, or says what is wrong with it.
  Result<std::string> (*item_check)(std::string_view) = nullptr;
  // From and to the struct of the section. REQUIRES: a canonical value of the kind.
  Value (*get)(const void*) = nullptr;
  void (*set)(void*, const Value&) = nullptr;
};

struct Section {
  std::string_view name;
  bool repeated = false;  // [[listen]] and [[origin]]
  std::string_view doc;
  std::span<const Key> keys;
  // The n-th struct (n is 0 where not repeated). REQUIRES: index < count(config).
  void* (*at)(Config&, std::size_t index) = nullptr;
  std::size_t (*count)(const Config&) = nullptr;
  // Repeated only: makes it `count` default structs.
  void (*resize)(Config&, std::size_t count) = nullptr;
};

// All sections, in the order of documentation.
std::span<const Section> schema();

// nullptr where there is none.
const Section* find_section(std::string_view name);
const Key* find_key(const Section& section, std::string_view name);

// Brings a value as written into canonical form. Errors: "what is wrong, what is accepted",
// without the key's name; the value of a secret is not shown.
Result<Value> accept(const Key& key, const Value& written);

// What a key accepts, for messages and documentation: "64KiB .. 1TiB".
std::string accepted_text(const Key& key);

// A canonical value as TOML: `"256MiB"`, `[443, 8443]`.
std::string toml_text(const Key& key, const Value& value);

// "cache.memory", "listen.0.address".
std::string key_path(const Section& section, std::size_t index, const Key& key);

}  // namespace encore::config

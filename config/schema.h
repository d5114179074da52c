// The one table of everything that can be configured: name, kind, range, meaning. The parser,
// --set, --dump-config, docs/CONFIG.md and the check of a reload all read it. Constant data,
// thread-safe. Why there is one table: docs/decisions/0010.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "config/config.h"
#include "config/key.h"

namespace encore::config {

struct Section {
  std::string_view name;
  bool repeated = false;  // [[listen]], [[origin]], [[rule]] and [[disk]]
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

// The values that a key accepts, for messages and documentation: "64KiB .. 1TiB".
std::string accepted_text(const Key& key);

// A canonical value as TOML: `"256MiB"`, `[443, 8443]`; empty where it is unset.
std::string toml_text(const Key& key, const Value& value);

// "cache.memory", "listen.0.address".
std::string key_path(const Section& section, std::size_t index, const Key& key);

}  // namespace encore::config

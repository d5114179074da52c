// A TOML file as data, for readers that have no schema: encore-sim's sweep files. Values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"

namespace encore::config {

struct TomlMember;
using TomlTable = std::vector<TomlMember>;  // in the order of the file

struct TomlValue {
  std::variant<bool, std::int64_t, double, std::string, std::vector<TomlValue>, TomlTable> value;
  std::string place;  // "sweep.toml:3:8"
};

struct TomlMember {
  std::string name;
  TomlValue value;
};

// Errors: the text is not TOML, or has a date; the message begins with the place, as
// "sweep.toml:3:8". `name` is the file's.
Result<TomlTable> read_toml_document(std::string_view text, std::string_view name);

}  // namespace encore::config

// TOML into a Draft, by the schema; the only part that knows the parser. Internal to config/.
#pragma once

#include <string_view>

#include "base/error.h"
#include "config/draft.h"
#include "config/schema.h"

namespace encore::config {

// Puts every value of the text into the draft, every fault likewise. False: it is not TOML.
bool read_toml(std::string_view text, std::string_view name, Draft& draft);

// Parses a value after --set section.key=, for the kind of the key: as TOML if it is TOML, and
// lists and texts also without quotes and brackets. A value of another kind is returned as a
// string, which accept() refuses. Errors: not UTF-8.
Result<Value> read_set_value(const Key& key, std::string_view text);

}  // namespace encore::config

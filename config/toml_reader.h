// TOML into a Draft, by the schema; the only part that knows the parser. Internal to config/.
#pragma once

#include <string_view>

#include "base/error.h"
#include "config/draft.h"
#include "config/schema.h"

namespace encore::config {

// Puts every value of the text into the draft, every fault likewise. False: it is not TOML.
bool read_toml(std::string_view text, std::string_view name, Draft& draft);

// A value as it stands behind --set section.key=, for the kind of the key: TOML where it is TOML,
// and lists and texts also without quotes and brackets. What is not of the kind comes back as a
// string, for accept() to refuse. Errors: not UTF-8.
Result<Value> read_set_value(const Key& key, std::string_view text);

}  // namespace encore::config

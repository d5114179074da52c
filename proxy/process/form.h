// Forms as pages send them (application/x-www-form-urlencoded): names and values. Pure,
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace encore::server {

// In their order; names as they are written, values decoded. Errors: a broken escape.
Result<std::vector<std::pair<std::string, std::string>>> read_form(std::string_view form);

// "name=value", escaped, behind "&" where something stands there already.
void append_form(std::string_view name, std::string_view value, std::string& out);

}  // namespace encore::server

// Text within HTML. Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace encore {

// `text` as it may stand between tags, and in an attribute in double quotation marks.
std::string html_escaped(std::string_view text);

}  // namespace encore

// Content in a coding (RFC 9110 8.4), by zlib and zstd. Pure, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "proxy/publish/negotiation.h"

namespace encore::publish {

// The same bytes for the same content. Nothing where there is no memory, or where it would not be
// smaller: then it goes as it is.
std::optional<std::string> encode(std::string_view content, Coding coding);

}  // namespace encore::publish

// A client's preferences: a media type (RFC 9110 12.5.1) and a content coding (12.5.3). Pure,
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "proxy/http/message.h"

namespace encore::publish {

// The number of the offered type with the highest weight, of equal ones the first; a type's weight
// is that of the most specific range it is in. Without Accept the first. Nothing: none will do.
std::optional<std::size_t> choose_type(const http::Fields& fields,
                                       std::span<const std::string_view> offered);

enum class Coding : std::uint8_t { kIdentity, kGzip, kZstd };
// "", "gzip", "zstd".
std::string_view to_string(Coding coding) noexcept;

// The coding with the highest weight, of equal ones the one that makes the content smallest;
// identity where nothing is said, and where nothing else is left.
Coding choose_coding(const http::Fields& fields);

}  // namespace encore::publish

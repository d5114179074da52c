// SHA-256 digests that paths name, as registries and mirrors of packages have them. Pure,
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace encore::http {

// Prefix of a digest in a key that is made of it.
inline constexpr std::string_view kDigestKey = "sha256:";

// The first digest in a path, 64 hexadecimal digits in lower case: behind "sha256", in any case,
// and one of ":", "-", "_" or "/", and with no further digit behind it.
std::optional<std::string> sha256_in_path(std::string_view path);

}  // namespace encore::http

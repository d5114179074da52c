// The texts of [[listen]] tls. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace encore::config {

// Action if a file of a pair does not exist.
enum class MissingPair : std::uint8_t { kError, kSelfSigned };

// A certificate and its key, in files.
struct TlsPair {
  std::string certificate;
  std::string key;
  std::string ocsp;  // empty: nothing is stapled
  MissingPair missing = MissingPair::kError;
};

// Parses a table's lines, "name=value", as the reader of TOML writes them. The error states the
// fault.
Result<TlsPair> parse_tls_pair(std::string_view lines);
// The same as it is written in TOML: `{certificate = "a.pem", key = "a.key"}`.
std::string inline_table(std::string_view lines);

Result<std::string> check_alpn(std::string_view text);

}  // namespace encore::config

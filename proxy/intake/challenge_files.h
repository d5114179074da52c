// Challenges of ACME by http-01 (RFC 8555 8.3): an ACME client writes a file, and the certificate
// authority requests it to see that the client controls the name. Only what is a key authorization
// leaves the directory (docs/decisions/0570). Functions without a state, thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "config/config.h"
#include "proxy/http/message.h"

namespace encore::server {

inline constexpr std::string_view kChallengePath = "/.well-known/acme-challenge/";
inline constexpr std::size_t kChallengeTokenMax = 128;
inline constexpr std::size_t kChallengeBytesMax = 4096;

// Returns the name behind kChallengePath that a GET or HEAD requests, without its query, whatever
// it consists of; nothing: the request is for something else. To a forward listener only the
// origin form is for the proxy itself.
std::optional<std::string_view> challenge_name(const http::RequestHead& head, config::Mode mode);

// Returns the content of the file of that name: `NAME.THUMBPRINT`, and maybe blanks and line ends.
// Nothing: the name is no token, or the directory has no such file for this process to read. Reads
// at most kChallengeBytesMax + 1 bytes, follows no link and waits for no FIFO.
std::optional<std::string> read_challenge(const std::string& directory, std::string_view name);

// The error says that the directory cannot be read, and the key that names it. "" is fine.
Result<void> check_challenge_directory(const std::string& directory);

}  // namespace encore::server

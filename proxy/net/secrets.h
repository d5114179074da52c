// Secrets and their stored forms: digests, and hashes of passwords as crypt(5) has them.
// Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace encore::net {

using Digest = std::array<std::uint8_t, 32>;

// SHA-256.
Digest sha256(std::string_view text);
// HMAC with SHA-256.
Digest keyed_digest(const Digest& key, std::string_view text);
// Random bytes of the system's.
Digest random_digest();
// Takes as long wherever they differ.
bool equal_in_constant_time(const Digest& a, const Digest& b);
// 64 hexadecimal digits.
std::optional<Digest> parse_digest(std::string_view hex);

// Whether it is a whole hash of a method that takes a guesser long: bcrypt ($2b$, $2y$), yescrypt
// ($y$), SHA-512 ($6$). Errors say what is wrong, without the hash.
Result<void> check_password_hash(std::string_view hash);
// True if the password has this hash. Takes tens of milliseconds and more: that is what it is for.
// REQUIRES: check_password_hash(hash).
bool has_hash(const std::string& password, const std::string& hash);

// The text that stands for `text` in base64 with padding (RFC 4648 4); nothing: it stands for none.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace encore::net

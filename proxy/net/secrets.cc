#include "proxy/net/secrets.h"

#include <crypt.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <algorithm>
#include <memory>

#include "base/check.h"

namespace encore::net {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// How a method begins, and how long what stands behind the last '$' is.
struct Method {
  std::string_view begin;
  std::size_t last;
};
constexpr std::array<Method, 4> kMethods = {{{"$2b$", 53}, {"$2y$", 53}, {"$y$", 43}, {"$6$", 86}}};

}  // namespace

Digest sha256(std::string_view text) {
  Digest digest{};
  ::SHA256(bytes_of(text), text.size(), digest.data());
  return digest;
}

Digest keyed_digest(const Digest& key, std::string_view text) {
  Digest digest{};
  unsigned size = 0;
  const auto* made = ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
                            bytes_of(text), text.size(), digest.data(), &size);
  ENCORE_CHECK(made != nullptr && size == digest.size(), "a keyed digest can be made");
  return digest;
}

Digest random_digest() {
  Digest bytes{};
  // With up to 256 bytes it is never interrupted.
  const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
  ENCORE_CHECK(got == static_cast<ssize_t>(bytes.size()), "the system has random bytes");
  return bytes;
}

bool equal_in_constant_time(const Digest& a, const Digest& b) {
  return ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::optional<Digest> parse_digest(std::string_view hex) {
  Digest digest{};
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = hex_digit(hex[2 * i]);
    const int low = hex_digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return digest;
}

Result<void> check_password_hash(std::string_view hash) {
  const auto method = std::ranges::find_if(
      kMethods, [hash](const Method& each) { return hash.starts_with(each.begin); });
  if (method == kMethods.end()) {
    return fail(
        "has a weak or unknown hash; accepted: bcrypt ($2b$, $2y$), yescrypt ($y$) or SHA-512 "
        "($6$)");
  }
  const std::size_t last = hash.rfind('$');
  const std::string text(hash);
  const bool known = ::crypt_checksalt(text.c_str()) == CRYPT_SALT_OK;
  if (!known || hash.size() - last - 1 != method->last) return fail("is not a complete hash");
  return {};
}

bool has_hash(const std::string& password, const std::string& hash) {
  // crypt() would see what stands in front of it alone.
  if (password.find('\0') != std::string::npos) return false;
  const auto room = std::make_unique<crypt_data>();
  const char* const made = ::crypt_r(password.c_str(), hash.c_str(), room.get());
  const bool same = made != nullptr && std::string_view(made).size() == hash.size() &&
                    ::CRYPTO_memcmp(made, hash.data(), hash.size()) == 0;
  ::OPENSSL_cleanse(room.get(), sizeof(crypt_data));
  return same;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : (text.ends_with("=") ? 1 : 0);
  text.remove_suffix(padding);
  std::string decoded;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const std::size_t value = kBase64.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6U | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    decoded += static_cast<char>(bits >> count & 0xffU);
  }
  // The unused bits of the last digit are zero in a valid encoding.
  if ((bits & ((1U << count) - 1)) != 0) return std::nullopt;
  return decoded;
}

}  // namespace encore::net

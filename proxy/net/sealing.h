// Sealing: bytes that pass through others and that only their receiver can read. Receiver and
// sender have a key pair each for one transfer (X25519, RFC 7748) and agree on a key (HKDF, RFC
// 5869); parts are encrypted and authenticated by it (AES-256-GCM). It does not tell who the other
// one is. Keys are never logged.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "proxy/net/secrets.h"

struct evp_pkey_st;

namespace encore::net {

// A pair for one transfer. Thread-compatible.
class SealingPair {
 public:
  // Errors: the system or the library has no key.
  static Result<SealingPair> create();
  // For the other one, who may be anybody.
  const Digest& public_key() const { return public_key_; }
  // The common key, of this transfer alone. `context` is the same for both; it is the transfer's
  // description. Nothing: `theirs` is no public key.
  std::optional<Digest> agree(const Digest& theirs, std::string_view context) const;

 private:
  struct Free {
    void operator()(evp_pkey_st* key) const;
  };
  using Key = std::unique_ptr<evp_pkey_st, Free>;
  explicit SealingPair(Key key) : key_(std::move(key)) {}
  Key key_;
  Digest public_key_{};
};

// Bytes that sealing adds to a part.
inline constexpr std::size_t kSealBytes = 16;

// Seals part `number` of a transfer. REQUIRES: no other part of the same key has that number.
std::string seal(const Digest& key, std::uint64_t number, std::string_view bytes);
// Nothing: it is not that part, or its bytes were changed.
std::optional<std::string> open_sealed(const Digest& key, std::uint64_t number,
                                       std::string_view sealed);

// 64 hexadecimal digits, as parse_digest() reads them.
std::string to_hex(const Digest& digest);

}  // namespace encore::net

#include "proxy/net/sealing.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace encore::net {
namespace {

constexpr std::size_t kNonceBytes = 12;

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { ::EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, FreeCipher>;

struct FreeDerivation {
  void operator()(EVP_PKEY_CTX* context) const { ::EVP_PKEY_CTX_free(context); }
};
using Derivation = std::unique_ptr<EVP_PKEY_CTX, FreeDerivation>;

const std::uint8_t* part_bytes(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

std::string_view text_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// A key is used for one transfer, and each part of that has its number.
std::array<std::uint8_t, kNonceBytes> nonce_of(std::uint64_t number) {
  std::array<std::uint8_t, kNonceBytes> nonce{};
  for (std::size_t i = 0; i < sizeof number; ++i) {
    nonce[i] = static_cast<std::uint8_t>(number >> (8 * i));
  }
  return nonce;
}

}  // namespace

void SealingPair::Free::operator()(evp_pkey_st* key) const { ::EVP_PKEY_free(key); }

Result<SealingPair> SealingPair::create() {
  const Digest secret = random_digest();
  Key key(::EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, secret.data(), secret.size()));
  if (key == nullptr) return fail("no key can be made");
  SealingPair made(std::move(key));
  std::size_t size = made.public_key_.size();
  if (::EVP_PKEY_get_raw_public_key(made.key_.get(), made.public_key_.data(), &size) != 1 ||
      size != made.public_key_.size()) {
    return fail("no key can be made");
  }
  return made;
}

std::optional<Digest> SealingPair::agree(const Digest& theirs, std::string_view context) const {
  const Key other(
      ::EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, theirs.data(), theirs.size()));
  const Derivation derivation(::EVP_PKEY_CTX_new(key_.get(), nullptr));
  Digest shared{};
  std::size_t size = shared.size();
  if (other == nullptr || derivation == nullptr || ::EVP_PKEY_derive_init(derivation.get()) != 1 ||
      ::EVP_PKEY_derive_set_peer(derivation.get(), other.get()) != 1 ||
      ::EVP_PKEY_derive(derivation.get(), shared.data(), &size) != 1 || size != shared.size()) {
    return std::nullopt;
  }
  // Both public keys, in an order that both ends find.
  const auto& [low, high] = std::minmax(public_key_, theirs);
  std::string info(context);
  info.append(text_of(low)).append(text_of(high)).push_back('\x01');
  return keyed_digest(keyed_digest(Digest{}, text_of(shared)), info);
}

std::string seal(const Digest& key, std::uint64_t number, std::string_view bytes) {
  const Cipher cipher(::EVP_CIPHER_CTX_new());
  const auto nonce = nonce_of(number);
  std::string sealed(bytes.size() + kSealBytes, '\0');
  auto* const out = reinterpret_cast<std::uint8_t*>(sealed.data());
  int size = 0;
  int last = 0;
  const bool done = cipher != nullptr &&
                    ::EVP_EncryptInit_ex(cipher.get(), ::EVP_aes_256_gcm(), nullptr, key.data(),
                                         nonce.data()) == 1 &&
                    ::EVP_EncryptUpdate(cipher.get(), out, &size, part_bytes(bytes),
                                        static_cast<int>(bytes.size())) == 1 &&
                    ::EVP_EncryptFinal_ex(cipher.get(), out + size, &last) == 1 &&
                    ::EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kSealBytes,
                                          out + bytes.size()) == 1;
  ENCORE_CHECK(done, "a part can be sealed");
  return sealed;
}

std::optional<std::string> open_sealed(const Digest& key, std::uint64_t number,
                                       std::string_view sealed) {
  if (sealed.size() < kSealBytes) return std::nullopt;
  const Cipher cipher(::EVP_CIPHER_CTX_new());
  const auto nonce = nonce_of(number);
  const std::string_view body = sealed.substr(0, sealed.size() - kSealBytes);
  std::string tag(sealed.substr(body.size()));
  std::string bytes(body.size(), '\0');
  auto* const out = reinterpret_cast<std::uint8_t*>(bytes.data());
  int size = 0;
  int last = 0;
  const bool is_whole =
      cipher != nullptr &&
      ::EVP_DecryptInit_ex(cipher.get(), ::EVP_aes_256_gcm(), nullptr, key.data(), nonce.data()) ==
          1 &&
      ::EVP_DecryptUpdate(cipher.get(), out, &size, part_bytes(body),
                          static_cast<int>(body.size())) == 1 &&
      ::EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kSealBytes, tag.data()) == 1 &&
      ::EVP_DecryptFinal_ex(cipher.get(), out + size, &last) == 1;
  return is_whole ? std::optional(std::move(bytes)) : std::nullopt;
}

std::string to_hex(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const std::uint8_t byte : digest) {
    hex += kDigits[byte >> 4U];
    hex += kDigits[byte & 0xfU];
  }
  return hex;
}

}  // namespace encore::net

#include "proxy/net/body_digest.h"

#include <openssl/evp.h>

#include <array>
#include <utility>

#include "base/check.h"

namespace encore::net {
namespace {

constexpr std::size_t kDigestBytes = 32;

}  // namespace

void BodyDigest::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

BodyDigest::BodyDigest(std::string expected_hex)
    : expected_(std::move(expected_hex)), context_(EVP_MD_CTX_new()) {
  ENCORE_CHECK(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1,
               "the library has SHA-256");
}

BodyDigest::~BodyDigest() = default;
BodyDigest::BodyDigest(BodyDigest&&) noexcept = default;
BodyDigest& BodyDigest::operator=(BodyDigest&&) noexcept = default;

void BodyDigest::add(std::string_view bytes) {
  const int done = EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  ENCORE_CHECK(done == 1, "a digest takes all bytes");
}

bool BodyDigest::is_right_with(std::string_view last) const {
  const Context copy(EVP_MD_CTX_new());
  std::array<unsigned char, kDigestBytes> digest{};
  unsigned size = 0;
  const bool done = copy != nullptr && EVP_MD_CTX_copy_ex(copy.get(), context_.get()) == 1 &&
                    EVP_DigestUpdate(copy.get(), last.data(), last.size()) == 1 &&
                    EVP_DigestFinal_ex(copy.get(), digest.data(), &size) == 1;
  ENCORE_CHECK(done && size == digest.size(), "a digest has its bytes");
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += kDigits[byte >> 4U];
    hex += kDigits[byte & 0xfU];
  }
  return hex == expected_;
}

}  // namespace encore::net

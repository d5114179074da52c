#include "filter/hash.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/check.h"

namespace encore::filter {
namespace {

struct NamedFamily {
  HashFamily family;
  std::string_view name;
};
constexpr std::array kFamilies{NamedFamily{HashFamily::kXxh3, "xxh3"},
                               NamedFamily{HashFamily::kMurmur3, "murmur3"},
                               NamedFamily{HashFamily::kSiphash, "siphash"},
                               NamedFamily{HashFamily::kMd5, "md5"},
                               NamedFamily{HashFamily::kSha1, "sha1"},
                               NamedFamily{HashFamily::kSha512, "sha512"},
                               NamedFamily{HashFamily::kChained, "chained"},
                               NamedFamily{HashFamily::kSha1Fields20, "sha1-fields20"},
                               NamedFamily{HashFamily::kSquidMd5, "squid-md5"},
                               NamedFamily{HashFamily::kMd5Fields, "md5-fields"},
                               NamedFamily{HashFamily::kSha1Fields, "sha1-fields"},
                               NamedFamily{HashFamily::kSha256Fields, "sha256-fields"},
                               NamedFamily{HashFamily::kSha256Fields32, "sha256-fields32"},
                               NamedFamily{HashFamily::kMd5Numbered, "md5-numbered"},
                               NamedFamily{HashFamily::kSha1Numbered, "sha1-numbered"},
                               NamedFamily{HashFamily::kSha256Numbered, "sha256-numbered"}};

enum class Digest : std::uint8_t { kMd5, kSha1, kSha256, kSha512 };

// The digest that a family cuts its bits from. REQUIRES: it has one.
Digest digest_of(HashFamily family) noexcept {
  switch (family) {
    case HashFamily::kMd5:
    case HashFamily::kSquidMd5:
    case HashFamily::kMd5Fields:
    case HashFamily::kMd5Numbered:
      return Digest::kMd5;
    case HashFamily::kSha1:
    case HashFamily::kSha1Fields20:
    case HashFamily::kSha1Fields:
    case HashFamily::kSha1Numbered:
      return Digest::kSha1;
    case HashFamily::kSha256Fields:
    case HashFamily::kSha256Fields32:
    case HashFamily::kSha256Numbered:
      return Digest::kSha256;
    case HashFamily::kSha512:
      return Digest::kSha512;
    case HashFamily::kXxh3:
    case HashFamily::kMurmur3:
    case HashFamily::kSiphash:
    case HashFamily::kChained:
      break;
  }
  ENCORE_CHECK(false, "not a family of digests");
  return Digest::kMd5;
}

std::uint64_t load_le64(const void* bytes) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  if constexpr (std::endian::native == std::endian::big) {
    value = std::byteswap(value);
  }
  return value;
}

std::uint32_t load_le32(const void* bytes) noexcept {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  if constexpr (std::endian::native == std::endian::big) {
    value = std::byteswap(value);
  }
  return value;
}

// The last, incomplete 8-byte word, padded with zeros.
std::uint64_t load_tail(const char* bytes, std::size_t size) noexcept {
  std::array<char, 8> padded{};
  if (size != 0) {
    std::memcpy(padded.data(), bytes, size);
  }
  return load_le64(padded.data());
}

Hash128 xxh3(const Seed& seed, std::string_view bytes) noexcept {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed.lo);
  return {hash.low64 ^ seed.hi, hash.high64 + std::rotl(seed.hi, 32)};
}

// MurmurHash3 x64 128 (A. Appleby).
constexpr std::uint64_t kMurmur1 = 0x87c37b91114253d5U;
constexpr std::uint64_t kMurmur2 = 0x4cf5ad432745937fU;

Hash128 murmur3(const Seed& seed, std::string_view bytes) noexcept {
  std::uint64_t h1 = seed.lo;
  std::uint64_t h2 = seed.hi;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 16; at += 16, left -= 16) {
    h1 ^= std::rotl(load_le64(at) * kMurmur1, 31) * kMurmur2;
    h1 = (std::rotl(h1, 27) + h2) * 5 + 0x52dce729U;
    h2 ^= std::rotl(load_le64(at + 8) * kMurmur2, 33) * kMurmur1;
    h2 = (std::rotl(h2, 31) + h1) * 5 + 0x38495ab5U;
  }
  if (left > 8) {
    h2 ^= std::rotl(load_tail(at + 8, left - 8) * kMurmur2, 33) * kMurmur1;
  }
  if (left > 0) {
    h1 ^= std::rotl(load_tail(at, std::min<std::size_t>(left, 8)) * kMurmur1, 31) * kMurmur2;
  }
  h1 ^= bytes.size();
  h2 ^= bytes.size();
  h1 += h2;
  h2 += h1;
  h1 = scrambled(h1);
  h2 = scrambled(h2);
  h1 += h2;
  h2 += h1;
  return {h1, h2};
}

// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein 2012).
struct SipState {
  std::uint64_t v0, v1, v2, v3;
  void round() noexcept {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }
  void absorb(std::uint64_t word) noexcept {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
  std::uint64_t finish(std::uint64_t& lane, std::uint64_t tag) noexcept {
    lane ^= tag;
    round();
    round();
    round();
    round();
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

Hash128 siphash(const Seed& seed, std::string_view bytes) noexcept {
  SipState state{seed.lo ^ 0x736f6d6570736575U, seed.hi ^ 0x646f72616e646f6dU ^ 0xeeU,
                 seed.lo ^ 0x6c7967656e657261U, seed.hi ^ 0x7465646279746573U};
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    state.absorb(load_le64(at));
  }
  state.absorb(load_tail(at, left) | (static_cast<std::uint64_t>(bytes.size()) << 56U));
  const std::uint64_t lo = state.finish(state.v2, 0xee);
  const std::uint64_t hi = state.finish(state.v1, 0xdd);
  return {lo, hi};
}

// One digest context a thread: OpenSSL's one-shot calls look the algorithm up every time.
class Digester {
 public:
  using Output = std::array<std::uint8_t, EVP_MAX_MD_SIZE>;

  // The digest of the two parts in a row; its length.
  std::size_t digest(Digest digest, std::string_view first, std::string_view second,
                     Output& out) noexcept {
    unsigned int size = 0;
    const bool done = EVP_DigestInit_ex2(context_.get(), algorithm(digest), nullptr) == 1 &&
                      EVP_DigestUpdate(context_.get(), first.data(), first.size()) == 1 &&
                      EVP_DigestUpdate(context_.get(), second.data(), second.size()) == 1 &&
                      EVP_DigestFinal_ex(context_.get(), out.data(), &size) == 1;
    ENCORE_CHECK(done, "OpenSSL refused a digest that was there at the start");
    return size;
  }

 private:
  struct Free {
    void operator()(EVP_MD* md) const noexcept { EVP_MD_free(md); }
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
  };
  using Algorithm = std::unique_ptr<EVP_MD, Free>;

  const EVP_MD* algorithm(Digest digest) noexcept {
    switch (digest) {
      case Digest::kMd5:
        return fetched(md5_, "MD5");
      case Digest::kSha1:
        return fetched(sha1_, "SHA1");
      case Digest::kSha256:
        return fetched(sha256_, "SHA256");
      case Digest::kSha512:
        return fetched(sha512_, "SHA512");
    }
    return nullptr;
  }
  static const EVP_MD* fetched(Algorithm& algorithm, const char* name) noexcept {
    if (!algorithm) {
      algorithm.reset(EVP_MD_fetch(nullptr, name, nullptr));
      ENCORE_CHECK(algorithm != nullptr, "OpenSSL offers no such digest (FIPS mode?)");
    }
    return algorithm.get();
  }

  Algorithm md5_;
  Algorithm sha1_;
  Algorithm sha256_;
  Algorithm sha512_;
  std::unique_ptr<EVP_MD_CTX, Free> context_{EVP_MD_CTX_new()};
};

Digester& digester() {
  thread_local Digester instance;
  return instance;
}

Hash128 digest_hash(HashFamily family, const Seed& seed, std::string_view bytes) noexcept {
  std::array<char, 16> prefix{};
  for (std::size_t i = 0; i < 8; ++i) {
    prefix[i] = static_cast<char>(seed.lo >> (8 * i) & 0xffU);
    prefix[i + 8] = static_cast<char>(seed.hi >> (8 * i) & 0xffU);
  }
  Digester::Output out;
  const bool seeded = seed != Seed{};
  digester().digest(digest_of(family), std::string_view(prefix.data(), seeded ? prefix.size() : 0),
                    bytes, out);
  return {load_le64(out.data()), load_le64(out.data() + 8)};
}

// Field i is bits `width` i .. `width` (i + 1) - 1 of the digest, read as one big number.
void digest_fields(HashFamily family, std::string_view key, std::uint64_t bits,
                   std::span<std::uint64_t> out) noexcept {
  const std::uint32_t width = field_width(family, bits);
  ENCORE_CHECK(out.size() * width <= fielded_bits(family), "a digest has no more fields");
  Digester::Output digest;
  digester().digest(digest_of(family), key, {}, digest);
  std::size_t at = 0;  // in bits
  for (std::uint64_t& index : out) {
    std::uint64_t field = 0;
    for (std::uint32_t left = width; left != 0;) {
      const auto in_byte = static_cast<std::uint32_t>(8 - at % 8);
      const std::uint32_t some = std::min(left, in_byte);
      const std::uint32_t part = (digest[at / 8] >> (in_byte - some)) & ((1U << some) - 1U);
      field = field << some | part;
      at += some;
      left -= some;
    }
    index = field % bits;
  }
}

// Index i is the digest of i, in decimal, and the key, read as one big number. (Remainders stay
// below 2^42, so that two more bytes fit.)
void numbered_digests(HashFamily family, std::string_view key, std::uint64_t bits,
                      std::span<std::uint64_t> out) noexcept {
  std::array<char, 20> number{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto end = std::to_chars(number.data(), number.data() + number.size(), i).ptr;
    Digester::Output digest;
    const std::size_t size =
        digester().digest(digest_of(family), std::string_view(number.data(), end), key, digest);
    std::uint64_t rest = 0;
    for (std::size_t at = 0; at < size; at += 2) {
      rest = (rest << 16U | std::uint64_t{digest[at]} << 8U | digest[at + 1]) % bits;
    }
    out[i] = rest;
  }
}

// Squid's storeKeyPublic() and cacheDigestHashKey().
void squid_words(std::string_view url, std::uint64_t bits, std::span<std::uint64_t> out) noexcept {
  ENCORE_CHECK(out.size() <= kSquidHashes, "an MD5 is four words");
  constexpr char kGet = 1;
  Digester::Output digest;
  digester().digest(Digest::kMd5, std::string_view(&kGet, 1), url, digest);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint32_t word = 0;
    for (std::size_t byte = 4 * i; byte < 4 * i + 4; ++byte) {
      word = word << 8U | digest[byte];
    }
    out[i] = word % bits;
  }
}

void chained(const Seed& seed, std::string_view key, std::uint64_t bits,
             std::span<std::uint64_t> out) noexcept {
  std::uint64_t value = seed.lo ^ std::rotl(seed.hi, 32);
  for (std::uint64_t& index : out) {
    value = XXH3_64bits_withSeed(key.data(), key.size(), value);
    index = scaled(value, bits);
  }
}

// Fills `out` with words of one digest after the other; `digest(counter, words)` makes them.
template <typename Digest>
void fill_from_digests(std::uint64_t bits, std::span<std::uint64_t> out, Digest digest) noexcept {
  ENCORE_CHECK(bits >= 1 && bits <= (std::uint64_t{1} << 32U),
               "indices from 32-bit words reach 2^32 bits at most");
  std::size_t filled = 0;
  for (unsigned counter = 0; filled < out.size(); ++counter) {
    ENCORE_CHECK(counter < 256, "the counter is one byte");
    Digester::Output words;
    const std::size_t size = digest(static_cast<std::uint8_t>(counter), words);
    for (std::size_t at = 0; at + 4 <= size && filled < out.size(); at += 4) {
      out[filled++] = load_le32(words.data() + at) % bits;
    }
  }
}

void append_hex(std::string& out, std::uint64_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (unsigned shift = 64; shift != 0; shift -= 4) {
    out.push_back(kDigits[value >> (shift - 4) & 0xfU]);
  }
}

}  // namespace

std::string_view to_string(HashFamily family) noexcept {
  for (const NamedFamily& entry : kFamilies) {
    if (entry.family == family) {
      return entry.name;
    }
  }
  return "?";
}

Result<HashFamily> parse_hash_family(std::string_view name) {
  std::string accepted;
  for (const NamedFamily& entry : kFamilies) {
    if (entry.name == name) {
      return entry.family;
    }
    accepted += accepted.empty() ? "" : ", ";
    accepted += entry.name;
  }
  return fail("unknown hash family \"" + std::string(name) + "\", accepted: " + accepted);
}

Hash128 hash_key(HashFamily family, const Seed& seed, std::string_view bytes) noexcept {
  switch (family) {
    case HashFamily::kXxh3:
      return xxh3(seed, bytes);
    case HashFamily::kMurmur3:
      return murmur3(seed, bytes);
    case HashFamily::kSiphash:
      return siphash(seed, bytes);
    case HashFamily::kMd5:
    case HashFamily::kSha1:
    case HashFamily::kSha512:
      return digest_hash(family, seed, bytes);
    default:
      break;
  }
  ENCORE_CHECK(false, "a hash family that lists indices, or none");
  return {};
}

void key_indices(HashFamily family, const Seed& seed, std::string_view key, std::uint64_t bits,
                 std::span<std::uint64_t> out) noexcept {
  ENCORE_CHECK(lists_indices(family), "this hash family gives 128 bits, not indices");
  switch (family) {
    case HashFamily::kSquidMd5:
      squid_words(key, bits, out);
      return;
    case HashFamily::kMd5Numbered:
    case HashFamily::kSha1Numbered:
    case HashFamily::kSha256Numbered:
      numbered_digests(family, key, bits, out);
      return;
    case HashFamily::kChained:
      chained(seed, key, bits, out);
      return;
    default:
      digest_fields(family, key, bits, out);
  }
}

Result<Seed> parse_seed(std::string_view hex) {
  const auto refuse = [&] {
    return fail("a seed of " + std::to_string(hex.size()) +
                " characters, accepted: 1 to 32 hex digits");
  };
  if (hex.empty() || hex.size() > 32) {
    return refuse();
  }
  const std::size_t low_digits = std::min<std::size_t>(hex.size(), 16);
  const std::string_view high = hex.substr(0, hex.size() - low_digits);
  const std::string_view low = hex.substr(hex.size() - low_digits);
  const auto read = [](std::string_view text, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    return error == std::errc{} && end == text.data() + text.size();
  };
  Seed seed;
  if ((!high.empty() && !read(high, seed.hi)) || !read(low, seed.lo)) {
    return refuse();
  }
  return seed;
}

std::string to_hex(const Seed& seed) {
  std::string out;
  append_hex(out, seed.hi);
  append_hex(out, seed.lo);
  return out;
}

std::string fingerprint(const Seed& seed) {
  // SHA-512 over a label and the seed: one-way, and of no use for any other purpose.
  const Hash128 digest = digest_hash(HashFamily::kSha512, seed, "encore filter seed fingerprint");
  std::string out;
  append_hex(out, digest.lo);
  return out;
}

void digest_indices(HashFamily family, std::string_view key, std::uint64_t bits,
                    std::span<std::uint64_t> out) noexcept {
  fill_from_digests(bits, out, [&](std::uint8_t counter, Digester::Output& words) {
    const char byte = static_cast<char>(counter);
    return digester().digest(digest_of(family), std::string_view(&byte, 1), key, words);
  });
}

void overwriting_digest_indices(HashFamily family, std::span<std::uint8_t> block,
                                std::uint64_t bits, std::span<std::uint64_t> out) noexcept {
  ENCORE_CHECK(!block.empty(), "byte 0 of the block holds the counter");
  fill_from_digests(bits, out, [&](std::uint8_t counter, Digester::Output& words) {
    block[0] = counter;
    const std::string_view whole(reinterpret_cast<const char*>(block.data()), block.size());
    return digester().digest(digest_of(family), whole, {}, words);
  });
}

}  // namespace encore::filter

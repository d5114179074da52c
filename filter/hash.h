// Hash families of the filter: from a key's bytes to 128 bits, or to a list of indices.
// Pure functions, thread-safe.
//
// The use of the bits. A filter takes its indices from `lo` and `hi` themselves. Code that splits
// the keys *before* they reach a filter must not take bits from there, or the keys of one part
// would crowd one part of the filter. It takes them from remix():
//
//   remix bits 63..56   shard of a cache (shard_of)
//   remix bits 55..40   sample of the shadow (sample_of)
//   remix bits 39..0    free
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace encore::filter {

struct Hash128 {
  std::uint64_t lo = 0;
  std::uint64_t hi = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

// 128 secret bits. Kept with the saved state, never shown: what may be shown is fingerprint().
struct Seed {
  std::uint64_t lo = 0;
  std::uint64_t hi = 0;
  friend bool operator==(const Seed&, const Seed&) = default;
};

// xxh3: XXH3, 128 bits, seeded with seed.lo, the result masked with seed.hi; the default. murmur3:
// MurmurHash3 x64 128, started at (seed.lo, seed.hi); the published function where both halves are
// the same 32-bit number. siphash: SipHash-2-4, 128 bits, the seed is its key; for hostile clients.
// md5, sha1, sha512: the first 128 bits of the digest, in little-endian fields, of the seed's 16
// bytes (left out where the seed is zero) and the key; for study.
//
// The others have no 128 bits that a filter cuts its indices from, but list them (lists_indices),
// for classic filters only. With chained, value i is the seed of value i + 1, as Apache Hadoop
// does; XXH3, 64 bits. The rest has no seed, because its forms are published:
//
// By sha1-fields20, the digest's 160 bits are eight fields of 20, most significant bit first, each
// mod m: J. Gregorio's "Bloom Filter Resources" (2008). By squid-md5, the key is a URL: the four
// big-endian words of the MD5 of one byte, the number that GET has in Squid, and the URL, each mod
// m. By md5-fields, sha1-fields, sha256-fields: fields of ceil(log2 m) bits, most significant bit
// first, each mod m. By sha256-fields32: eight fields of 32 bits, each mod m. By md5-numbered,
// sha1-numbered, sha256-numbered, index i is the digest of i in decimal (from 0) and the key, as
// one big-endian number mod m, for any number of indices.
enum class HashFamily : std::uint8_t {
  kXxh3,
  kMurmur3,
  kSiphash,
  kMd5,
  kSha1,
  kSha512,
  kChained,
  kSha1Fields20,
  kSquidMd5,
  kMd5Fields,
  kSha1Fields,
  kSha256Fields,
  kSha256Fields32,
  kMd5Numbered,
  kSha1Numbered,
  kSha256Numbered
};
// (Appended to, never reordered: saved forms hold the numbers.)
inline constexpr HashFamily kLastFamily = HashFamily::kSha256Numbered;

constexpr bool lists_indices(HashFamily family) noexcept { return family >= HashFamily::kChained; }

// Bits of a field for a filter of `bits` positions; 0 for a family without fields.
constexpr std::uint32_t field_width(HashFamily family, std::uint64_t bits) noexcept {
  switch (family) {
    case HashFamily::kSha1Fields20:
      return 20;
    case HashFamily::kSha256Fields32:
      return 32;
    case HashFamily::kMd5Fields:
    case HashFamily::kSha1Fields:
    case HashFamily::kSha256Fields:
      return bits <= 2 ? 1 : static_cast<std::uint32_t>(std::bit_width(bits - 1));
    default:
      return 0;
  }
}
// Bits of the digest that a family of fields cuts; 0 for a family without fields.
constexpr std::uint32_t fielded_bits(HashFamily family) noexcept {
  switch (family) {
    case HashFamily::kMd5Fields:
      return 128;
    case HashFamily::kSha1Fields20:
    case HashFamily::kSha1Fields:
      return 160;
    case HashFamily::kSha256Fields:
    case HashFamily::kSha256Fields32:
      return 256;
    default:
      return 0;
  }
}

// The limit of sha1-fields20: so many indices, each below 2^20.
inline constexpr std::uint32_t kFields20Max = 8;
inline constexpr std::uint64_t kFields20Bits = std::uint64_t{1} << 20U;
// The limits of squid-md5: so many indices, and whole bytes of fewer bits than these, for Squid
// counts them in an int.
inline constexpr std::uint32_t kSquidHashes = 4;
inline constexpr std::uint64_t kSquidBitsMax = std::uint64_t{1} << 31U;

// "xxh3", "murmur3", ..., "sha256-numbered", as above.
std::string_view to_string(HashFamily family) noexcept;
// Errors: an unknown name; the message shows it and the accepted ones.
Result<HashFamily> parse_hash_family(std::string_view name);

// REQUIRES: a family that does not list indices.
Hash128 hash_key(HashFamily family, const Seed& seed, std::string_view bytes) noexcept;

// Fills `out` with the key's indices below `bits`. REQUIRES: a family that lists indices, what
// checked() asks of it (parameters.h).
void key_indices(HashFamily family, const Seed& seed, std::string_view key, std::uint64_t bits,
                 std::span<std::uint64_t> out) noexcept;

// A key with its identity hash: xxh3 under the cache's own seed. `bytes` is borrowed for the call;
// only a filter generation with another family or seed reads it.
struct HashedKey {
  Hash128 hash;
  std::string_view bytes;
};
inline HashedKey identify(const Seed& seed, std::string_view bytes) noexcept {
  return {hash_key(HashFamily::kXxh3, seed, bytes), bytes};
}

// 64 random bits -> [0, range) without a division.
__extension__ using Wide = unsigned __int128;
constexpr std::uint64_t scaled(std::uint64_t bits, std::uint64_t range) noexcept {
  return static_cast<std::uint64_t>((static_cast<Wide>(bits) * range) >> 64U);
}

// MurmurHash3's 64-bit finaliser.
constexpr std::uint64_t scrambled(std::uint64_t x) noexcept {
  x = (x ^ (x >> 33U)) * 0xff51afd7ed558ccdU;
  x = (x ^ (x >> 33U)) * 0xc4ceb9fe1a85ec53U;
  return x ^ (x >> 33U);
}

// 64 bits that are independent of the filter's indices, see above.
constexpr std::uint64_t remix(const Hash128& hash) noexcept {
  return (hash.lo ^ std::rotl(hash.hi, 32)) * 0x9fb21c651e98df25U;
}
// The shard of `shards` (1..256) that a key belongs to; every shard gets an equal share.
// REQUIRES: shards is a power of two.
constexpr std::uint32_t shard_of(const Hash128& hash, std::uint32_t shards) noexcept {
  return static_cast<std::uint32_t>(((remix(hash) >> 56U) * shards) >> 8U);
}
// Sixteen bits for sampling: a sample of one in 2^s are the keys with sample_of() < 2^(16-s).
constexpr std::uint32_t sample_of(const Hash128& hash) noexcept {
  return static_cast<std::uint32_t>(remix(hash) >> 40U) & 0xffffU;
}
// Above all of them.
inline constexpr std::uint32_t kEverySample = 0x10000U;

// Seed <-> 32 hex digits (fewer are read as leading zeros). Errors of the reader: not hex, empty or
// too long; the message shows the length only, for a seed is a secret.
Result<Seed> parse_seed(std::string_view hex);
std::string to_hex(const Seed& seed);
// 16 hex digits of a one-way function of the seed: equal for equal seeds, for logs and publishing.
std::string fingerprint(const Seed& seed);

// A list of indices cut from digests: digest(counter byte || key) for counter 0, 1, 2, ... gives
// little-endian 32-bit words, each taken mod `bits`, until `out` is full.
// REQUIRES: family is kMd5, kSha1 or kSha512; 1 <= bits <= 2^32; at most 256 digests are needed.
void digest_indices(HashFamily family, std::string_view key, std::uint64_t bits,
                    std::span<std::uint64_t> out) noexcept;
// The same where the counter *overwrites* byte 0 of the block, as in J. Plank's CS494 block
// experiment. Leaves the last counter in byte 0. REQUIRES: as above; block is not empty.
void overwriting_digest_indices(HashFamily family, std::span<std::uint8_t> block,
                                std::uint64_t bits, std::span<std::uint64_t> out) noexcept;

}  // namespace encore::filter

// Squid's cache digest (application/cache-digest): what a Squid publishes of its store, and what it
// reads of a sibling's. A header of 128 bytes, numbers in network order:
//
//   versions, current and required (16 bits each) · capacity, count, deletions, size of the mask in
//   bytes (32 each) · bits an entry, hash functions (8 each) · 16 bits and 104 bytes of nothing
//
// and the mask: bit i in byte i / 8, worth 2^(i mod 8). An entry's key is HashFamily::kSquidMd5 of
// its URL. Checked against Squid 5.7 (tests/e2e/test_squid_digest.py). Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "filter/bloom_filter.h"
#include "filter/parameters.h"

namespace encore::filter {

struct SquidDigest {
  std::uint16_t version = 5;
  std::uint16_t version_required = 3;
  std::uint32_t capacity = 0;  // entries that it is made for
  std::uint32_t count = 0;     // entries that were put in
  std::uint32_t deletions = 0;
  std::uint8_t bits_per_entry = 5;
  std::uint8_t hashes = 4;
  std::string mask;
};

// Squid's own: entries of 5 bits, mask of whole bytes, 4 hashes of squid-md5. REQUIRES: capacity is
// at most kSquidCapacityMax.
inline constexpr std::uint64_t kSquidCapacityMax = (std::uint64_t{1} << 31U) / 5 - 8;
FilterParameters squid_digest_parameters(std::uint64_t capacity);

// Errors, as Squid itself finds them: too short, a version beyond ours, numbers that are zero, a
// mask whose size is not that of the capacity, another number of hashes than 4; and a length other
// than the stated one. Allocates as much as the bytes at hand.
Result<SquidDigest> read_squid_digest(std::string_view bytes);
// The bytes of the digest that begins so, by its header. Errors: no whole header.
Result<std::uint64_t> squid_digest_size(std::string_view bytes);
// REQUIRES: a mask of less than 2^32 bytes.
std::string write_squid_digest(const SquidDigest& digest);

// A digest as a filter: classic, squid-md5. Its insertions are the count, or the set bits where
// they are fewer. Errors: memory.
Result<BloomFilter> filter_of(const SquidDigest& digest);
// Errors: a filter of another hash, layout or k, for what is not there cannot be hashed again; a
// number of bits that is no multiple of eight, or for which there is no number of bits an entry.
Result<SquidDigest> squid_digest_of(const BloomFilter& filter);

}  // namespace encore::filter

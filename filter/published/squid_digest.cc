#include "filter/published/squid_digest.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/check.h"

namespace encore::filter {
namespace {

constexpr std::size_t kHeaderBytes = 128;
constexpr std::uint16_t kVersion = 5;
constexpr std::uint8_t kDigestHashes = 4;
constexpr std::uint64_t kBitsPerEntry = 5;

// Numbers in network order from the front. The caller has made sure that there are enough bytes.
template <typename T>
T take(std::string_view& bytes) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value = static_cast<T>(value << 8U | static_cast<unsigned char>(bytes[i]));
  }
  bytes.remove_prefix(sizeof value);
  return value;
}
template <>
std::uint8_t take(std::string_view& bytes) {
  const auto value = static_cast<std::uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  return value;
}

template <typename T>
void put(std::string& out, T value) {
  for (std::size_t i = sizeof value; i != 0; --i) {
    out.push_back(static_cast<char>(std::uint64_t{value} >> (8 * (i - 1)) & 0xffU));
  }
}

// Squid's cacheDigestCalcMaskSize().
std::uint64_t mask_bytes(std::uint64_t capacity, std::uint64_t bits_per_entry) {
  return (capacity * bits_per_entry + 7) / 8;
}

std::unexpected<Error> bad_digest(const std::string& what) {
  return fail("Squid digest refused: " + what);
}

// Checks the fields that Squid checks in the header of a peer's digest.
Result<void> check_header(const SquidDigest& digest, std::uint64_t mask_size) {
  if (digest.version_required > kVersion || digest.version_required > digest.version) {
    return bad_digest("version " + std::to_string(digest.version) + ", of which " +
                      std::to_string(digest.version_required) + " is required, accepted: 5");
  }
  if (digest.capacity == 0 || digest.bits_per_entry == 0 || mask_size == 0) {
    return bad_digest("a capacity of " + std::to_string(digest.capacity) + " with " +
                      std::to_string(digest.bits_per_entry) + " bits an entry in a mask of " +
                      std::to_string(mask_size) + " bytes, accepted: at least 1 of each");
  }
  if (mask_size != mask_bytes(digest.capacity, digest.bits_per_entry)) {
    return bad_digest("a mask of " + std::to_string(mask_size) + " bytes for " +
                      std::to_string(digest.capacity) + " entries of " +
                      std::to_string(digest.bits_per_entry) + " bits");
  }
  if (mask_size * 8 >= kSquidBitsMax) {
    return bad_digest("a mask of " + std::to_string(mask_size) +
                      " bytes, accepted: less than 2^28");
  }
  if (digest.hashes != kDigestHashes) {
    return bad_digest(std::to_string(digest.hashes) + " hash functions, accepted: 4");
  }
  return {};
}

FilterParameters parameters_of(std::uint64_t capacity, std::uint64_t bits) {
  return {.layout = Layout::kClassic,
          .hash = HashFamily::kSquidMd5,
          .bits = bits,
          .hashes = kDigestHashes,
          .capacity = capacity,
          .seed = {}};
}

}  // namespace

FilterParameters squid_digest_parameters(std::uint64_t capacity) {
  ENCORE_CHECK(capacity <= kSquidCapacityMax, "more entries than a digest can have");
  return parameters_of(capacity, mask_bytes(capacity, kBitsPerEntry) * 8);
}

Result<std::uint64_t> squid_digest_size(std::string_view bytes) {
  constexpr std::size_t kMaskSizeAt = 16;
  if (bytes.size() < kHeaderBytes) {
    return bad_digest(std::to_string(bytes.size()) + " bytes, its header has 128");
  }
  bytes.remove_prefix(kMaskSizeAt);
  return kHeaderBytes + std::uint64_t{take<std::uint32_t>(bytes)};
}

Result<SquidDigest> read_squid_digest(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) {
    return bad_digest(std::to_string(bytes.size()) +
                      " bytes, accepted: a header of 128 and a mask");
  }
  std::string_view header = bytes;
  SquidDigest digest;
  digest.version = take<std::uint16_t>(header);
  digest.version_required = take<std::uint16_t>(header);
  digest.capacity = take<std::uint32_t>(header);
  digest.count = take<std::uint32_t>(header);
  digest.deletions = take<std::uint32_t>(header);
  const std::uint64_t mask_size = take<std::uint32_t>(header);
  digest.bits_per_entry = take<std::uint8_t>(header);
  digest.hashes = take<std::uint8_t>(header);
  if (auto fine = check_header(digest, mask_size); !fine) {
    return std::unexpected(fine.error());
  }
  if (bytes.size() != kHeaderBytes + mask_size) {
    return bad_digest(std::to_string(bytes.size()) + " bytes, expected " +
                      std::to_string(kHeaderBytes + mask_size));
  }
  digest.mask = bytes.substr(kHeaderBytes);
  return digest;
}

std::string write_squid_digest(const SquidDigest& digest) {
  ENCORE_CHECK(digest.mask.size() <= std::numeric_limits<std::uint32_t>::max(),
               "a mask whose size has 32 bits");
  std::string out;
  out.reserve(kHeaderBytes + digest.mask.size());
  put(out, digest.version);
  put(out, digest.version_required);
  put(out, digest.capacity);
  put(out, digest.count);
  put(out, digest.deletions);
  put(out, static_cast<std::uint32_t>(digest.mask.size()));
  put(out, digest.bits_per_entry);
  put(out, digest.hashes);
  out.resize(kHeaderBytes, '\0');
  out += digest.mask;
  return out;
}

Result<BloomFilter> filter_of(const SquidDigest& digest) {
  std::uint64_t set_bits = 0;
  for (const char byte : digest.mask) {
    set_bits += static_cast<std::uint64_t>(std::popcount(static_cast<unsigned char>(byte)));
  }
  return BloomFilter::from_raw_bits(parameters_of(digest.capacity, digest.mask.size() * 8),
                                    digest.mask, std::min<std::uint64_t>(digest.count, set_bits));
}

Result<SquidDigest> squid_digest_of(const BloomFilter& filter) {
  const FilterParameters& parameters = filter.parameters();
  if (parameters.hash != HashFamily::kSquidMd5 || parameters.hashes != kDigestHashes) {
    return fail("a filter with " + std::to_string(parameters.hashes) + " hashes " +
                std::string(to_string(parameters.hash)) +
                " is no Squid digest, accepted: 4 hashes squid-md5 (its keys are not in a filter, "
                "so it has to be built with these)");
  }
  if (parameters.bits % 8 != 0) {
    return fail("a filter of " + std::to_string(parameters.bits) +
                " bits as a Squid digest, accepted: a multiple of 8");
  }
  SquidDigest digest;
  const std::uint64_t bytes = parameters.bits / 8;
  std::uint64_t capacity = parameters.capacity;
  std::uint64_t per_entry = kBitsPerEntry;
  if (mask_bytes(std::min(capacity, parameters.bits), per_entry) != bytes) {
    per_entry = capacity > parameters.bits ? 0 : parameters.bits / capacity;
    if (per_entry > 255 || mask_bytes(capacity, per_entry) != bytes) {
      // Five bits each fill any whole number of bytes but for less than one.
      per_entry = kBitsPerEntry;
      capacity = parameters.bits / kBitsPerEntry;
    }
  }
  digest.capacity = static_cast<std::uint32_t>(capacity);
  digest.bits_per_entry = static_cast<std::uint8_t>(per_entry);
  digest.count = static_cast<std::uint32_t>(filter.insertions());
  digest.mask = filter.raw_bits();
  return digest;
}

}  // namespace encore::filter

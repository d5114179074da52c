#include "sim/replay/seen_set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>

#include "filter/bloom_filter.h"

namespace encore::sim {
namespace {

constexpr std::uint32_t kHashBytesMax = 16;

class HashTable final : public SeenSet {
 public:
  HashTable(std::uint64_t slots, std::uint32_t width)
      : slots_(slots), width_(width), bytes_(slots * width) {}

  bool test_and_set(const filter::Hash128& hash) override {
    std::array<std::uint8_t, kHashBytesMax> kept{};
    std::memcpy(kept.data(), &hash.lo, 8);
    std::memcpy(kept.data() + 8, &hash.hi, 8);
    std::fill(kept.begin() + width_, kept.end(), std::uint8_t{0});
    if (std::ranges::all_of(kept, [](std::uint8_t byte) { return byte == 0; })) {
      kept[0] = 1;  // all zero marks an empty slot
    }
    // The place depends on the kept bits alone, else equal short hashes would not meet.
    std::uint64_t lo = 0;
    std::uint64_t hi = 0;
    std::memcpy(&lo, kept.data(), 8);
    std::memcpy(&hi, kept.data() + 8, 8);
    __extension__ using Wide = unsigned __int128;
    const std::uint64_t mixed = (lo ^ hi) * 0x9e3779b97f4a7c15U;
    auto slot = static_cast<std::uint64_t>((static_cast<Wide>(mixed) * slots_) >> 64U);
    while (true) {
      std::uint8_t* at = bytes_.data() + slot * width_;
      if (std::memcmp(at, kept.data(), width_) == 0) {
        return true;
      }
      if (std::all_of(at, at + width_, [](std::uint8_t byte) { return byte == 0; })) {
        std::memcpy(at, kept.data(), width_);
        return false;
      }
      slot = slot + 1 == slots_ ? 0 : slot + 1;
    }
  }
  std::uint64_t memory_bytes() const override { return bytes_.size(); }

 private:
  std::uint64_t slots_;
  std::uint32_t width_;
  std::vector<std::uint8_t> bytes_;
};

class BloomSet final : public SeenSet {
 public:
  explicit BloomSet(filter::BloomFilter filter) : filter_(std::move(filter)) {}
  bool test_and_set(const filter::Hash128& hash) override { return filter_.test_and_set(hash); }
  std::uint64_t memory_bytes() const override { return filter_.parameters().bits / 8; }

 private:
  filter::BloomFilter filter_;
};

}  // namespace

Result<std::unique_ptr<SeenSet>> make_hash_table(std::uint64_t keys, std::uint32_t hash_bytes) {
  if (hash_bytes == 0 || hash_bytes > kHashBytesMax) {
    return fail("hashes of " + std::to_string(hash_bytes) + " bytes, accepted: 1 to 16");
  }
  constexpr std::uint64_t kSlotsMax = std::uint64_t{1} << 36U;
  const std::uint64_t slots = 2 * std::max<std::uint64_t>(keys, 1);
  if (slots > kSlotsMax) {
    return fail("a table for " + std::to_string(keys) + " keys, accepted: up to 34359738368");
  }
  try {
    return std::make_unique<HashTable>(slots, hash_bytes);
  } catch (const std::bad_alloc&) {
    return fail("no memory for a table of " + std::to_string(slots * hash_bytes) + " bytes");
  }
}

Result<std::unique_ptr<SeenSet>> make_bloom_set(const filter::FilterParameters& parameters) {
  auto made = filter::BloomFilter::create(parameters);
  if (!made) {
    return std::unexpected(made.error());
  }
  return std::make_unique<BloomSet>(std::move(*made));
}

double short_hash_fpr(std::uint32_t hash_bits, double keys) {
  return -std::expm1(keys * std::log1p(-std::exp2(-static_cast<double>(hash_bits))));
}

double short_hash_fpr_incremental(std::uint32_t hash_bits, double keys) {
  // The mean of 1 - q^i over i = 0..n-1 is 1 - (1 - q^n) / (n (1 - q)). If q^n is near 1 the two
  // terms cancel, and n/2 of one key's share is exact enough.
  const double share = std::exp2(-static_cast<double>(hash_bits));
  if (keys * share < 1e-4) {
    return share * (keys - 1) / 2;
  }
  return 1 - short_hash_fpr(hash_bits, keys) / (keys * share);
}

}  // namespace encore::sim

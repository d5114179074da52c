// Parameters of a filter: layout, size, number of hashes, hash family, seed. Values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "filter/hash.h"

namespace encore::filter {

// classic: k bits anywhere (Bloom 1970). partitioned: one bit in each of k slices (Almeida et al.
// 2007). blocked: k bits in one 64-byte line (Putze, Sanders, Singler 2007). split: one bit in each
// of the eight 64-bit words of one line, k = 8; the fastest.
enum class Layout : std::uint8_t { kClassic, kPartitioned, kBlocked, kSplit };

std::string_view to_string(Layout layout) noexcept;
// Errors: an unknown name; the message shows it and the accepted ones.
Result<Layout> parse_layout(std::string_view name);

// An FPR of 2^-1024, which is less than a double holds, needs no more.
inline constexpr std::uint32_t kHashesMax = 1024;
inline constexpr std::uint32_t kSplitHashes = 8;
inline constexpr std::uint64_t kLineBits = 512;
inline constexpr std::uint32_t kGenerationsMax = 16;               // in a ring
inline constexpr std::uint64_t kBitsMax = std::uint64_t{1} << 42;  // half a tebibyte

// The properties of a filter that theory needs.
struct FilterShape {
  Layout layout = Layout::kSplit;
  std::uint64_t bits = 0;
  std::uint32_t hashes = kSplitHashes;
  friend bool operator==(const FilterShape&, const FilterShape&) = default;
};

// One generation. `capacity` is the number of insertions after which a rotating filter rotates;
// a single filter only reports it.
struct FilterParameters {
  Layout layout = Layout::kSplit;
  HashFamily hash = HashFamily::kXxh3;
  std::uint64_t bits = 0;
  std::uint32_t hashes = kSplitHashes;
  std::uint64_t capacity = 0;
  Seed seed;

  FilterShape shape() const { return {layout, bits, hashes}; }
  friend bool operator==(const FilterParameters&, const FilterParameters&) = default;
};

// Returns the parameters with `bits` rounded up to a size that the layout can use: a multiple of k
// (partitioned) or of 512 (blocked, split), or of 8 (squid-md5). Errors: bits 0 or above kBitsMax,
// hashes 0 or above kHashesMax, k other than 8 with split, capacity 0, a partitioned filter with
// fewer bits than slices. Also a hash family that lists indices with another layout than classic,
// and a published one with a seed, with more hashes than its digest has fields, or with more bits
// than these reach.
Result<FilterParameters> checked(FilterParameters parameters);

// Whether a position means the same in filters of both parameters, whatever their capacities.
// Errors: another shape, hash or seed; the message shows what differs, and `deed`, which cannot be
// done with both: "merged".
Result<void> alike(const FilterParameters& a, const FilterParameters& b, const std::string& deed);

}  // namespace encore::filter

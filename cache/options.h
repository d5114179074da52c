// What a kernel is made of. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/time.h"
#include "filter/hash.h"
#include "filter/parameters.h"

namespace encore::cache {

// sieve: Zhang et al. 2024. lru, fifo: as ever. The others are the simulator's so far, see their
// headers; belady knows the future by the hints it is given.
enum class EvictionPolicy : std::uint8_t {
  kSieve,
  kLru,
  kFifo,
  kS3Fifo,
  kSlru,
  kTwoQ,
  kArc,
  kLfu,
  kGdsf,
  kWTinyLfu,
  kBelady,
};
inline constexpr std::size_t kEvictionPolicyCount = 11;

// second-hit: a rotating Bloom filter. exact-second-hit: the same rule on exact sets.
enum class AdmissionPolicy : std::uint8_t { kSecondHit, kAlways, kNever, kExactSecondHit };
inline constexpr std::size_t kAdmissionPolicyCount = 4;

std::string_view to_string(EvictionPolicy policy) noexcept;
std::string_view to_string(AdmissionPolicy policy) noexcept;
// Errors: an unknown name; the message shows it and the accepted ones.
Result<EvictionPolicy> parse_eviction(std::string_view name);
Result<AdmissionPolicy> parse_admission(std::string_view name);

struct AdmissionOptions {
  AdmissionPolicy policy = AdmissionPolicy::kSecondHit;
  // Of one generation of ONE SHARD. exact-second-hit takes the capacity of it; always and never
  // take nothing.
  filter::FilterParameters filter{};
  std::uint32_t generations = 2;
  bool refresh = true;
  Nanoseconds rotate_after{0};
  std::uint32_t shadow_one_in = 256;  // 0: no shadow, 1: every key
};

// Bytes of an entry with its share of the index, charged for each entry: 32 hot, 32 cold, 5 of an
// index slot at a mean fill of 0.6, and room for the directory.
inline constexpr std::uint32_t kEntryOverheadBytes = 76;
inline constexpr std::uint32_t kShardsMax = 256;
inline constexpr std::uint32_t kVariantsMax = 256;

struct KernelOptions {
  std::uint64_t capacity_bytes = 256ULL * 1024 * 1024;  // over all shards
  // No object is larger: neither than this (0: no such limit), nor than its share of the capacity.
  std::uint64_t max_object_bytes = 0;
  std::uint32_t max_object_share = 8;  // an eighth; 1: the whole
  std::uint32_t shards = 16;           // a power of two up to kShardsMax
  std::uint32_t variants_max = 32;     // of one key, up to kVariantsMax; beyond, the oldest goes
  std::uint32_t entry_overhead_bytes = kEntryOverheadBytes;
  EvictionPolicy eviction = EvictionPolicy::kSieve;
  AdmissionOptions admission{};
  filter::Seed identity_seed{};  // of every Key's hash
  // False: confined to one thread, no lock is taken (the simulator).
  bool concurrent = true;
};

// What may change at run time; see Kernel::reconfigure().
struct ReloadOptions {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t max_object_bytes = 0;
  std::uint32_t max_object_share = 8;
  std::uint32_t variants_max = 32;
  EvictionPolicy eviction = EvictionPolicy::kSieve;
  AdmissionOptions admission{};
};
ReloadOptions reload_options(const KernelOptions& options);

// Errors: shards not a power of two or out of range, variants_max 0 or above its limit, a capacity
// of 0 or above 2^62, a share of 0, what the filter refuses. The message says what and what is
// accepted.
Result<void> check_options(const KernelOptions& options);
Result<void> check_options(const ReloadOptions& options);

// The largest charge of one object, the kernel's overhead included.
std::uint64_t effective_max_object(const ReloadOptions& options) noexcept;

}  // namespace encore::cache

// Options of a kernel. Values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "cache/disk_place.h"
#include "cache/policy_parameters.h"
#include "filter/hash.h"
#include "filter/parameters.h"

namespace encore::cache {

// The papers are named at the head of each policy. belady knows the future by the hints it is
// given, so only a simulation can run it; it is the last one.
//  enumerator  name         class
#define ENCORE_EVICTION_POLICIES(X)                            \
  X(kSieve, "sieve", Sieve)                                    \
  X(kLru, "lru", Lru)                                          \
  X(kFifo, "fifo", Fifo)                                       \
  X(kS3Fifo, "s3-fifo", S3Fifo)                                \
  X(kSlru, "slru", Slru)                                       \
  X(kTwoQ, "2q", TwoQ)                                         \
  X(kArc, "arc", Arc)                                          \
  X(kLfu, "lfu", Lfu)                                          \
  X(kGdsf, "gdsf", Gdsf)                                       \
  X(kWTinyLfu, "w-tinylfu", WTinyLfu)                          \
  X(kLhd, "lhd", Lhd)                                          \
  X(kRandom, "random", RandomOrder)                            \
  X(kClock, "clock", Clock)                                    \
  X(kLruTwo, "lru-2", LruTwo)                                  \
  X(kLfuda, "lfuda", Lfuda)                                    \
  X(kHyperbolic, "hyperbolic", Hyperbolic)                     \
  X(kLirs, "lirs", Lirs)                                       \
  X(kLecar, "lecar", Lecar)                                    \
  X(kCacheus, "cacheus", Cacheus)                              \
  X(kAdaptiveWTinyLfu, "w-tinylfu-adaptive", AdaptiveWTinyLfu) \
  X(kLrb, "lrb", Lrb)                                          \
  X(kBelady, "belady", Belady)

// A policy's memory of requests.
enum class AdmissionMemory : std::uint8_t {
  kNothing,
  kFilter,  // a rotating Bloom filter, which can be saved
  kWindow,  // something else, for so many requests as AdmissionOptions::filter.capacity says
};

// second-hit: a rotating Bloom filter. exact-second-hit: the same rule on exact sets. nth-hit: the
// rule of second-hit for any number of requests. probation: for disks, cache/probation.h. The
// others: see their headers.
//  enumerator      name                memory
#define ENCORE_ADMISSION_POLICIES(X)              \
  X(kSecondHit, "second-hit", kFilter)            \
  X(kAlways, "always", kNothing)                  \
  X(kNever, "never", kNothing)                    \
  X(kExactSecondHit, "exact-second-hit", kWindow) \
  X(kNthHit, "nth-hit", kFilter)                  \
  X(kProbability, "probability", kNothing)        \
  X(kSizeThreshold, "size-threshold", kNothing)   \
  X(kTinyLfu, "tinylfu", kWindow)                 \
  X(kAdaptSize, "adaptsize", kWindow)             \
  X(kProbation, "probation", kFilter)

#define ENCORE_ENUMERATOR(id, name, more) id,
enum class EvictionPolicy : std::uint8_t { ENCORE_EVICTION_POLICIES(ENCORE_ENUMERATOR) };
enum class AdmissionPolicy : std::uint8_t { ENCORE_ADMISSION_POLICIES(ENCORE_ENUMERATOR) };
#undef ENCORE_ENUMERATOR

// In the order of the enumerators.
#define ENCORE_NAME(id, name, more) std::string_view(name),
inline constexpr std::array kEvictionNames = {ENCORE_EVICTION_POLICIES(ENCORE_NAME)};
inline constexpr std::array kAdmissionNames = {ENCORE_ADMISSION_POLICIES(ENCORE_NAME)};
#undef ENCORE_NAME
inline constexpr std::size_t kEvictionPolicyCount = kEvictionNames.size();
inline constexpr std::size_t kAdmissionPolicyCount = kAdmissionNames.size();
// Those that a proxy offers for its shadow policies: they need neither the future nor a library.
inline constexpr std::span<const std::string_view> kShadowEvictionNames =
    std::span(kEvictionNames).first<static_cast<std::size_t>(EvictionPolicy::kLecar)>();
// Those that a proxy offers: the others are there to be compared with.
inline constexpr std::span<const std::string_view> kProxyEvictionNames =
    std::span(kEvictionNames).first<static_cast<std::size_t>(EvictionPolicy::kRandom)>();
// Those that need no disk: all but probation.
inline constexpr std::span<const std::string_view> kMemoryAdmissionNames =
    std::span(kAdmissionNames).first<static_cast<std::size_t>(AdmissionPolicy::kProbation)>();
// True if the policy's memory is a rotating Bloom filter, which can be saved.
bool has_filter(AdmissionPolicy policy) noexcept;
// True if AdmissionOptions::filter.capacity means something to it.
bool has_window(AdmissionPolicy policy) noexcept;

std::string_view to_string(EvictionPolicy policy) noexcept;
std::string_view to_string(AdmissionPolicy policy) noexcept;
// Errors: an unknown name; the message shows it and the accepted ones.
Result<EvictionPolicy> parse_eviction(std::string_view name);
Result<AdmissionPolicy> parse_admission(std::string_view name);

struct AdmissionOptions {
  AdmissionPolicy policy = AdmissionPolicy::kSecondHit;
  // One generation of ONE SHARD, for second-hit, nth-hit and probation. exact-second-hit takes only
  // its capacity. tinylfu: its capacity is the number of requests after which frequencies are
  // halved, its size that of the doorkeeper. adaptsize: its capacity is the number of requests
  // between two tunings.
  filter::FilterParameters filter{};
  std::uint32_t generations = 2;
  bool refresh = true;
  Nanoseconds rotate_after{0};
  std::uint32_t shadow_one_in = 256;                  // 0: no shadow, 1: every key
  std::uint32_t min_requests = 3;                     // nth-hit: 2 to kMinRequestsMax
  double probability = 0.5;                           // probability: above 0, up to 1
  std::uint64_t size_threshold_bytes = 64ULL * 1024;  // size-threshold: stored up to it; at least 1
  bool fill = true;         // probation: what comes before a disk was full once is written to it
  Nanoseconds wait_max{0};  // probation: nothing waits longer; 0: no bound
  friend bool operator==(const AdmissionOptions&, const AdmissionOptions&) = default;
};
inline constexpr std::uint32_t kMinRequestsMax = 16;

// Bytes of an entry with its share of the index, charged for each entry: 32 hot, 32 cold, 5 of an
// index slot at a mean fill of 0.6, and room for the directory.
inline constexpr std::uint32_t kEntryOverheadBytes = 76;
// Charged for each entry on disk; all of them at most this share of the capacity.
inline constexpr std::uint32_t kDiskEntryBytes = 46;
inline constexpr std::uint32_t kDiskIndexShare = 2;  // a half
// One body takes at most this part of all disks.
inline constexpr std::uint32_t kDiskBodyShare = 8;
inline constexpr std::uint32_t kShardsMax = 256;
inline constexpr std::uint32_t kVariantsMax = 256;

// A disk of the disk tier.
struct DiskOptions {
  std::uint32_t segments = 0;       // kDiskSegmentsMin to kSegmentsMax
  std::uint64_t segment_bytes = 0;  // a power of two, kSegmentBytesMin to kSegmentBytesMax
  friend bool operator==(const DiskOptions&, const DiskOptions&) = default;
};
inline constexpr std::uint32_t kDiskSegmentsMin = 4;

// Rules for writing to disk and for re-insertion.
struct DiskRules {
  // Objects that would expire sooner are not written.
  std::uint32_t life_seconds_min = 60;
  // Bytes a second, over all disks (0: no limit); what is moved counts, but is never refused.
  std::uint64_t write_rate_max = 0;
  // The limit of re-insertion, in percent of a reclaimed segment.
  std::uint32_t reinsert_percent = 50;
  friend bool operator==(const DiskRules&, const DiskRules&) = default;
};
// More, and a segment that is reclaimed would hardly bring room.
inline constexpr std::uint32_t kReinsertPercentMax = 90;
inline constexpr std::uint64_t kWriteRateMax = 1ULL << 50U;

struct KernelOptions {
  std::uint64_t capacity_bytes = 256ULL * 1024 * 1024;  // over all shards
  // No object is larger: neither than this (0: no such limit), nor than its share of the capacity.
  std::uint64_t max_object_bytes = 0;
  std::uint32_t max_object_share = 8;  // an eighth; 1: the whole
  std::uint32_t shards = 16;           // a power of two up to kShardsMax
  std::uint32_t variants_max = 32;     // per key, up to kVariantsMax; beyond, the oldest goes
  std::uint32_t entry_overhead_bytes = kEntryOverheadBytes;
  EvictionPolicy eviction = EvictionPolicy::kSieve;
  EvictionSettings eviction_settings{};  // none for a policy that a reload brings
  AdmissionOptions admission{};
  filter::Seed identity_seed{};         // seed of every Key's hash
  std::vector<DiskOptions> disks = {};  // up to kDisksMax; empty: there is no disk tier
  DiskRules disk_rules{};
  // False: confined to one thread, no lock is taken (the simulator).
  bool concurrent = true;
  friend bool operator==(const KernelOptions&, const KernelOptions&) = default;
};

// Options that may change at run time; see Kernel::reconfigure().
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
// of 0 or above 2^62, a share of 0, disks and rules out of range, what the filter refuses. The
// message says what and what is accepted.
Result<void> check_options(const KernelOptions& options);
Result<void> check_options(const ReloadOptions& options);

// The largest charge of one object, the kernel's overhead included.
std::uint64_t effective_max_object(const ReloadOptions& options) noexcept;

}  // namespace encore::cache

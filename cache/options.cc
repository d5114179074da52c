#include "cache/options.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

namespace encore::cache {
namespace {

AdmissionMemory memory_of(AdmissionPolicy policy) {
  static constexpr std::array kMemory = {
#define ENCORE_MEMORY(id, name, memory) AdmissionMemory::memory,
      ENCORE_ADMISSION_POLICIES(ENCORE_MEMORY)
#undef ENCORE_MEMORY
  };
  return kMemory[static_cast<std::size_t>(policy)];
}

template <typename Enum, std::size_t kCount>
Result<Enum> parse(const std::array<std::string_view, kCount>& names, std::string_view what,
                   std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) {
    return static_cast<Enum>(found - names.begin());
  }
  std::string message =
      "unknown " + std::string(what) + " \"" + std::string(name) + "\", accepted:";
  for (const std::string_view accepted : names) {
    message += ' ';
    message += accepted;
  }
  return fail(std::move(message));
}

Result<void> check_admission(const AdmissionOptions& options) {
  const AdmissionPolicy policy = options.policy;
  if (has_filter(policy) || policy == AdmissionPolicy::kTinyLfu) {
    if (auto filter = filter::checked(options.filter); !filter) {
      return std::unexpected(filter.error());
    }
  }
  if (policy == AdmissionPolicy::kProbation &&
      (options.filter.hash != filter::HashFamily::kXxh3 || options.generations != 2 ||
       !options.refresh || options.wait_max.count() < 0)) {
    return fail("probation with " + std::to_string(options.generations) + " generations of " +
                std::string(to_string(options.filter.hash)) +
                ", accepted: two with refresh, xxh3, a wait of 0 or more");
  }
  if (has_window(policy) && options.filter.capacity == 0) {
    return fail(std::string(to_string(policy)) + " with capacity 0, accepted: at least 1");
  }
  if (policy == AdmissionPolicy::kNthHit &&
      (options.min_requests < 2 || options.min_requests > kMinRequestsMax)) {
    return fail("nth-hit with " + std::to_string(options.min_requests) +
                " requests, accepted: 2 to " + std::to_string(kMinRequestsMax));
  }
  if (policy == AdmissionPolicy::kProbability &&
      !(options.probability > 0 && options.probability <= 1)) {
    return fail("a probability of " + std::to_string(options.probability) +
                ", accepted: above 0, up to 1");
  }
  if (policy == AdmissionPolicy::kSizeThreshold && options.size_threshold_bytes == 0) {
    return fail("a size threshold of 0 bytes, accepted: at least 1");
  }
  return {};
}

constexpr std::uint64_t kCapacityMax = std::uint64_t{1} << 62;
// HotEntry::charge has 40 bits.
constexpr std::uint64_t kObjectMax = (std::uint64_t{1} << 40) - 1;

Result<void> check_disks(const KernelOptions& options) {
  if (options.disks.size() > kDisksMax) {
    return fail(std::to_string(options.disks.size()) + " disks, accepted: up to " +
                std::to_string(kDisksMax));
  }
  for (const DiskOptions& disk : options.disks) {
    if (disk.segments < kDiskSegmentsMin || disk.segments > kSegmentsMax) {
      return fail("a disk of " + std::to_string(disk.segments) + " segments, accepted: " +
                  std::to_string(kDiskSegmentsMin) + " to " + std::to_string(kSegmentsMax));
    }
    if (!std::has_single_bit(disk.segment_bytes) || disk.segment_bytes < kSegmentBytesMin ||
        disk.segment_bytes > kSegmentBytesMax) {
      return fail("segments of " + std::to_string(disk.segment_bytes) +
                  " bytes, accepted: a power of two, 65536 to 268435456");
    }
  }
  if (options.disk_rules.reinsert_percent > kReinsertPercentMax) {
    return fail("moving on up to " + std::to_string(options.disk_rules.reinsert_percent) +
                " % of a segment, accepted: 0 to " + std::to_string(kReinsertPercentMax));
  }
  if (options.disk_rules.write_rate_max > kWriteRateMax) {
    return fail("a write rate of " + std::to_string(options.disk_rules.write_rate_max) +
                " bytes a second, accepted: up to 2^50, 0: no limit");
  }
  return {};
}

}  // namespace

std::string_view to_string(EvictionPolicy policy) noexcept {
  return kEvictionNames[static_cast<std::size_t>(policy)];
}
std::string_view to_string(AdmissionPolicy policy) noexcept {
  return kAdmissionNames[static_cast<std::size_t>(policy)];
}
Result<EvictionPolicy> parse_eviction(std::string_view name) {
  return parse<EvictionPolicy>(kEvictionNames, "eviction policy", name);
}
Result<AdmissionPolicy> parse_admission(std::string_view name) {
  return parse<AdmissionPolicy>(kAdmissionNames, "admission policy", name);
}

bool has_filter(AdmissionPolicy policy) noexcept {
  return memory_of(policy) == AdmissionMemory::kFilter;
}
bool has_window(AdmissionPolicy policy) noexcept {
  return memory_of(policy) != AdmissionMemory::kNothing;
}

ReloadOptions reload_options(const KernelOptions& options) {
  return {.capacity_bytes = options.capacity_bytes,
          .max_object_bytes = options.max_object_bytes,
          .max_object_share = options.max_object_share,
          .variants_max = options.variants_max,
          .eviction = options.eviction,
          .admission = options.admission};
}

Result<void> check_options(const ReloadOptions& options) {
  if (options.capacity_bytes == 0 || options.capacity_bytes > kCapacityMax) {
    return fail("a cache of " + std::to_string(options.capacity_bytes) +
                " bytes, accepted: 1 to 2^62");
  }
  if (options.max_object_share == 0) {
    return fail("a largest object of 1/0 of the cache, accepted: 1/1 and smaller");
  }
  if (options.variants_max == 0 || options.variants_max > kVariantsMax) {
    return fail("at most " + std::to_string(options.variants_max) +
                " variants of a key, accepted: 1 to " + std::to_string(kVariantsMax));
  }
  return check_admission(options.admission);
}

Result<void> check_options(const KernelOptions& options) {
  if (!std::has_single_bit(options.shards) || options.shards > kShardsMax) {
    return fail(std::to_string(options.shards) + " shards, accepted: a power of two, 1 to " +
                std::to_string(kShardsMax));
  }
  if (auto accepted = check_disks(options); !accepted) {
    return accepted;
  }
  return check_options(reload_options(options));
}

std::uint64_t effective_max_object(const ReloadOptions& options) noexcept {
  const std::uint64_t share = options.capacity_bytes / options.max_object_share;
  const std::uint64_t bytes =
      options.max_object_bytes == 0 ? share : std::min(share, options.max_object_bytes);
  return std::min(bytes, kObjectMax);
}

}  // namespace encore::cache

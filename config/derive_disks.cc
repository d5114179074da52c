// Values derived from [[disk]].
#include <algorithm>

#include "config/derive.h"

namespace encore::config {

std::uint64_t segment_bytes_of(const Disk& disk) noexcept {
  return disk.segment_bytes != 0 ? disk.segment_bytes
                                 : cache::default_segment_bytes(disk.size_bytes);
}

Result<cache::DiskLayout> derive_disk(const Disk& disk) {
  return cache::lay_out_disk(disk.size_bytes, segment_bytes_of(disk));
}

ObjectEstimate estimate_objects(const Config& config) noexcept {
  const Cache& cache = config.cache;
  ObjectEstimate estimate;
  for (const Disk& disk : config.disk) {
    const auto layout = derive_disk(disk);
    if (!layout) continue;
    estimate.on_disk += layout->segments * layout->segment_bytes / cache.mean_object_bytes;
  }
  estimate.index_bytes = estimate.on_disk * cache::kDiskEntryBytes;
  estimate.index_bytes_max = cache.memory_bytes / cache::kDiskIndexShare;
  estimate.indexed = std::min(estimate.on_disk, estimate.index_bytes_max / cache::kDiskEntryBytes);
  estimate.in_memory =
      (cache.memory_bytes - estimate.indexed * cache::kDiskEntryBytes) / cache.mean_object_bytes;
  return estimate;
}

}  // namespace encore::config

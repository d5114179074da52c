#include "sim/cli/disk_options.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/cli/lists.h"
#include "base/units.h"
#include "cache/disk_layout.h"

namespace encore::sim {

void DiskArguments::declare(Arguments& a) {
  a.text("--disk-size", size_, "simulate a disk of this size behind the memory, as 10GiB");
  a.text("--disk-segment", segment_,
         "segment size of the disk, a power of two (default: as the proxy)");
  a.real("--disk-reinsert", reinsert_, "part of a reclaimed segment that is re-inserted at most",
         {.min = 0, .max = static_cast<double>(cache::kReinsertPercentMax) / 100});
}

Result<void> DiskArguments::read(const Arguments& arguments) {
  if (size_.empty()) {
    for (const char* option : {"--disk-segment", "--disk-reinsert"}) {
      if (arguments.given(option)) {
        return fail(std::string(option) + " goes with --disk-size only");
      }
    }
    return {};
  }
  const auto size = parse_size("--disk-size", size_, {.min = 1});
  if (!size) {
    return std::unexpected(size.error());
  }
  bytes_ = *size;
  disk_.segment_bytes = cache::default_segment_bytes(*size);
  if (!segment_.empty()) {
    const auto segment = parse_size("--disk-segment", segment_, {.min = 1});
    if (!segment) {
      return std::unexpected(segment.error());
    }
    disk_.segment_bytes = *segment;
  }
  disk_.segments =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(*size / disk_.segment_bytes, UINT32_MAX));
  return {};
}

Result<void> DiskArguments::check_for_probation() const {
  if (any() && bytes_ / cache::kDiskSegmentsMin < wanted_segment_bytes()) {
    return fail("--disk-segment \"" + segment_ + "\", accepted: up to a quarter of --disk-size " +
                size_);
  }
  return {};
}

Result<void> DiskArguments::check_for_kernel() const {
  if (!any()) {
    return {};
  }
  const std::uint64_t segments = bytes_ / disk_.segment_bytes;
  if (segments < cache::kDiskSegmentsMin || segments > cache::kSegmentsMax) {
    return fail("--disk-size " + size_ + " with segments of " + format_bytes(disk_.segment_bytes) +
                ", accepted: " + std::to_string(cache::kDiskSegmentsMin) + " to " +
                std::to_string(cache::kSegmentsMax) + " segments");
  }
  if (!std::has_single_bit(disk_.segment_bytes) || disk_.segment_bytes < cache::kSegmentBytesMin ||
      disk_.segment_bytes > cache::kSegmentBytesMax) {
    return fail("--disk-segment \"" + segment_ + "\", accepted: a power of two, 64KiB to 256MiB");
  }
  return {};
}

void DiskArguments::apply(cache::KernelOptions& options) const {
  if (any()) {
    options.disks = {disk_};
    // As the proxy: what is larger is for the disk only.
    options.max_object_share = 8;
    options.disk_rules.reinsert_percent = static_cast<std::uint32_t>(std::lround(reinsert_ * 100));
  }
}

void DiskArguments::append_parameters(Row& row) const {
  if (any()) {
    row.insert(row.end(), {Field{"disk_size", size_},
                           {"disk_segment", disk_.segment_bytes},
                           {"disk_reinsert", reinsert_}});
  }
}

}  // namespace encore::sim

// The check of one segment: its header, its footer, and each of its records, live or not. Blocks in
// the device; thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

#include "proxy/disk/cli/disk_fault.h"
#include "proxy/disk/cli/inspected_disk.h"

namespace encore::disk {

struct SegmentCheck {
  bool is_used = false;  // it has a header, or has had one
  // A process has begun it anew meanwhile: what was found of it says nothing.
  bool is_overwritten = false;
  std::uint64_t records = 0;       // that are sound
  std::uint64_t parts = 0;         // those of larger bodies
  std::uint64_t record_bytes = 0;  // bytes of all records
  std::uint64_t unfinished = 0;    // records at the end of the newest segment that are not whole
  std::vector<DiskFault> faults;
};

// `newest`: the highest sequence of the disk. That segment alone need not have a footer.
SegmentCheck segment_check(const InspectedDisk& disk, std::uint32_t segment, std::uint64_t newest);

}  // namespace encore::disk

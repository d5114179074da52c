// Reads and checks every byte of a disk that means anything: superblocks, purge log, headers of
// segments, footers and records. Blocks in the device; thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

#include "base/cli/monitor.h"
#include "proxy/disk/cli/disk_fault.h"
#include "proxy/disk/cli/inspected_disk.h"

namespace encore::disk {

struct VerifyReport {
  std::uint32_t segments_used = 0;
  std::uint32_t segments_free = 0;
  std::uint64_t records = 0;       // that are sound
  std::uint64_t parts = 0;         // those of larger bodies
  std::uint64_t record_bytes = 0;  // bytes of all records
  std::uint64_t purge_entries = 0;
  // At the end of the segment that was written last: what a crash has cut off, or what a process is
  // writing. No damage.
  std::uint64_t unfinished = 0;
  // Segments that a process has begun anew while they were read. No damage.
  std::uint32_t overwritten = 0;
  std::uint64_t fault_count = 0;
  std::vector<DiskFault> faults;  // the first kFaultsMax

  static constexpr std::size_t kFaultsMax = 1000;
};

VerifyReport verify_disk(const InspectedDisk& disk, Monitor& monitor);

}  // namespace encore::disk

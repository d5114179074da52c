// PartIndex: the parts of bodies on the inspected disks, for readers that find a head there: in a
// cache with several disks the parts of one body lie on all of them.
//
// Memory: 21 to 43 bytes a part, and some 50 a body. Blocks in the device; thread-compatible.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cache/disk_parts.h"
#include "proxy/disk/cli/inspected_disk.h"
#include "proxy/disk/cli/key_set.h"
#include "proxy/disk/record.h"

namespace encore::disk {

class PartIndex {
 public:
  // The disks are borrowed. `part_bytes`: of a body in each part but its last.
  explicit PartIndex(std::vector<const InspectedDisk*> disks,
                     std::uint64_t part_bytes = cache::kPartBytes)
      : disks_(std::move(disks)), part_bytes_(part_bytes) {}

  struct PartCount {
    std::uint64_t all = 0;    // parts of the body
    std::uint64_t there = 0;  // parts found
    bool is_whole() const { return there == all; }
  };
  // Reads the footers of all disks when it is asked for the first time. REQUIRES: of a kHead.
  PartCount find(const RecordFields& head);

 private:
  void read(const InspectedDisk& disk);

  std::vector<const InspectedDisk*> disks_;  // that are not read yet
  std::uint64_t part_bytes_;
  KeySet keys_;
  std::unordered_map<std::uint64_t, std::uint64_t> parts_of_;  // how many, by the body's number
};

}  // namespace encore::disk

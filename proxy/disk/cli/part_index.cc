#include "proxy/disk/cli/part_index.h"

#include <algorithm>
#include <utility>

#include "proxy/disk/segment_scan.h"

namespace encore::disk {

void PartIndex::read(const InspectedDisk& disk) {
  for (const SegmentHeader& header : disk.read_headers()) {
    auto footer = read_footer(disk.file(), disk.superblock(), header);
    if (!footer && disk.is_overwritten(header)) continue;
    if (!footer) footer = scan_segment(disk.file(), disk.superblock(), header).footer;
    for (const RecordLine& line : footer->lines) {
      // After a move, its old copy may still be there.
      if (line.kind == RecordKind::kPart && keys_.insert(line.key)) ++parts_of_[line.body];
    }
  }
}

PartIndex::PartCount PartIndex::find(const RecordFields& head) {
  for (const InspectedDisk* disk : std::exchange(disks_, {})) read(*disk);
  PartCount found{.all = head.body_bytes / part_bytes_ +
                         (head.body_bytes % part_bytes_ == 0 ? 0U : 1U)};
  const auto parts = parts_of_.find(head.body);
  if (parts != parts_of_.end()) found.there = std::min(found.all, parts->second);
  return found;
}

}  // namespace encore::disk

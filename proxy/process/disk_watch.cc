#include "proxy/process/disk_watch.h"

#include <algorithm>

#include "proxy/observe/log.h"

namespace encore::server {
namespace {

using disk::DiskCondition;

void say(const disk::DiskReport& disk, DiskCondition before) {
  switch (disk.condition) {
    case DiskCondition::kLoading:
      log::info("disk {}: reading {} segments with records", disk.path, disk.segments);
      return;
    case DiskCondition::kInService:
      if (before == DiskCondition::kWritesPaused) {
        log::info("disk {}: writing again", disk.path);
      } else {
        log::info("disk {}: ready, {} segments", disk.path, disk.segments);
      }
      return;
    case DiskCondition::kWritesPaused:
      log::warn("disk {}: {} writes failed; writing pauses for half a minute", disk.path,
                disk.write_errors);
      return;
    case DiskCondition::kOffline:
      log::error(
          "disk {}: out of service after {} failed reads and {} failed writes; the cache continues "
          "without it",
          disk.path, disk.read_errors, disk.write_errors);
      return;
  }
}

}  // namespace

void DiskWatch::look(const disk::DisksStatistics& disks, bool on_probation) {
  const bool is_first = seen_.empty();
  seen_.resize(disks.disks.size());
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    const disk::DiskReport& disk = disks.disks[i];
    Seen& seen = seen_[i];
    if (is_first && !disk.emptied_for.empty()) {
      log::warn("disk {}: {}; it was emptied", disk.path, disk.emptied_for);
    }
    if (is_first || disk.condition != seen.condition) say(disk, seen.condition);
    if (disk.purge_log_overflows != seen.overflows) {
      log::warn(
          "disk {}: its purge log was full; one purge of all older objects replaces its entries, "
          "so the next start does not find these objects",
          disk.path);
    }
    seen = {disk.condition, disk.purge_log_overflows};
  }
  const bool has_none =
      on_probation && std::ranges::all_of(disks.disks, [](const disk::DiskReport& disk) {
        return disk.condition == DiskCondition::kOffline;
      });
  if (has_none != has_none_) {
    if (has_none) {
      log::warn(
          "no disk is in service: admission is second-hit in memory until one is, because "
          "probation needs a disk");
    } else {
      log::info("admission is {} again", on_probation ? "probation" : "as configured");
    }
    has_none_ = has_none;
  }
  if (disks.witness_error != witness_error_ && !disks.witness_error.empty()) {
    log::warn("{}; an older copy of a disk will not be recognised", disks.witness_error);
  }
  witness_error_ = disks.witness_error;
}

}  // namespace encore::server

#include "proxy/process/disk_watch.h"

#include "proxy/observe/log.h"

namespace encore::server {
namespace {

using disk::DiskCondition;

void say(const disk::DiskReport& disk, DiskCondition before) {
  switch (disk.condition) {
    case DiskCondition::kLoading:
      log::info("disk {}: {} segments with records are being read", disk.path, disk.segments);
      return;
    case DiskCondition::kInService:
      if (before == DiskCondition::kWritesPaused) {
        log::info("disk {}: is written to again", disk.path);
      } else {
        log::info("disk {}: ready, {} segments", disk.path, disk.segments);
      }
      return;
    case DiskCondition::kWritesPaused:
      log::warn("disk {}: {} writes have failed; nothing is written for half a minute", disk.path,
                disk.write_errors);
      return;
    case DiskCondition::kOffline:
      log::error(
          "disk {}: out of service after {} failed reads and {} failed writes; the "
          "cache goes on without it",
          disk.path, disk.read_errors, disk.write_errors);
      return;
  }
}

}  // namespace

void DiskWatch::look(const disk::DisksStatistics& disks) {
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
          "disk {}: its purge log was full; one purge of all that was stored before takes the "
          "place "
          "of all, and the next start finds nothing of that",
          disk.path);
    }
    seen = {disk.condition, disk.purge_log_overflows};
  }
  if (disks.witness_error != witness_error_ && !disks.witness_error.empty()) {
    log::warn("{}; an older copy of a disk will not be known as one", disks.witness_error);
  }
  witness_error_ = disks.witness_error;
}

}  // namespace encore::server

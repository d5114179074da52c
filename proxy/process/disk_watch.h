// DiskWatch: logs the states of the disks: loaded, writes paused, out of service, more purges than
// it remembers one by one, made anew because it has missed some. Confined to the main thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proxy/disk/disks.h"

namespace encore::server {

class DiskWatch {
 public:
  // To be called a few times a second. `on_probation`: the admission policy is probation.
  void look(const disk::DisksStatistics& disks, bool on_probation);

 private:
  struct Seen {
    disk::DiskCondition condition = disk::DiskCondition::kLoading;
    std::uint64_t overflows = 0;  // in the purge log
  };
  std::vector<Seen> seen_;  // empty: nothing was said yet
  std::string witness_error_;
  bool has_none_ = false;  // on probation, and no disk is in service
};

}  // namespace encore::server

// DiskWatch: says in the log what becomes of the disks: loaded, writes paused, out of service.
// Confined to the main thread.
#pragma once

#include <vector>

#include "proxy/disk/disks.h"

namespace encore::server {

class DiskWatch {
 public:
  // To be called a few times a second.
  void look(const disk::DisksStatistics& disks);

 private:
  std::vector<disk::DiskCondition> seen_;  // empty: nothing was said yet
};

}  // namespace encore::server

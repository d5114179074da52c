// Which policy the disks follow. A new one: its header, which is included here, and its case.
#pragma once

#include "cache/reinsert_by_visits.h"
#include "cache/reinsert_requested.h"

namespace encore::cache {

// The policy that goes with probation in front of the disks, or with any other admission.
inline const DiskPolicy& disk_policy_for(bool probation) {
  static const ReinsertRequested kRequested;
  static const ReinsertByVisits kByVisits;
  if (probation) {
    return kByVisits;
  }
  return kRequested;
}

}  // namespace encore::cache

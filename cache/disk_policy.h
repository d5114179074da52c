// DiskPolicy: decisions about objects on disk. It decides which hits bring one into memory
// (promotion) and, when the oldest segment is reclaimed, in which order its objects are inspected
// and which of them are written again (re-insertion). The ring (SegmentLog) decides where a record
// lies, the tier which disk takes it, and admission which objects are written.
//
// Why it is so: docs/decisions/0465. A policy is a stateless class in a header of its own, and a
// case of cache/disk_policies.h. It is asked under the locks of a shard, the budget and the tier:
// cheap, no I/O.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "cache/reinsert_budget.h"
#include "cache/types.h"

namespace encore::cache {

// A record of a segment that is reclaimed.
struct DiskObject {
  DiskView view;
  std::uint32_t shard = 0;
  // Hits since it was written, or what a move has left of them. A used copy in memory counts two.
  std::uint32_t visits = 0;
  bool in_memory = false;  // as a copy
  bool part = false;       // a part of a body: moving some parts, when hardly ever all fit, helps
                           // nobody
  bool being_read = false;
};

class DiskPolicy {
 public:
  virtual ~DiskPolicy() = default;

  // True if a hit brings the object into memory; the view is of the moment before the hit.
  virtual bool promotes(const DiskView& view) const { return view.visited; }
  // True if a segment is reclaimed in two rounds over all shards: its objects are counted before
  // the first one is written again, and those with the most visits come first. Else there is one
  // round, in which they come as they are found.
  virtual bool compares() const { return false; }
  // Called for each written object in the first of two rounds.
  virtual void count(const DiskObject& /*object*/, MonotonicTime /*now*/,
                     ReinsertBudget& /*room*/) const {}
  // Returns the visits with which the object begins at its new place, and takes the room for it;
  // nothing if it is dropped.
  virtual std::optional<std::uint32_t> move(const DiskObject& object, MonotonicTime now,
                                            ReinsertBudget& room) const = 0;
};

}  // namespace encore::cache

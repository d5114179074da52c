// FIFO: the entry that came first goes first, used or not (Belady 1966).
#pragma once

#include "cache/entry_list.h"
#include "cache/eviction_order.h"

namespace encore::cache {

class Fifo {
 public:
  explicit Fifo(EntrySlab& slab) : slab_(slab) {}

  void insert(EntryRef ref, const Access& /*access*/) { list_.push_newest(slab_, ref); }
  void hit(EntryRef /*ref*/, const Access& /*access*/) {}
  void remove(EntryRef ref, Removal /*why*/) { list_.unlink(slab_, ref); }
  EntryRef victim() { return list_.oldest(); }

 private:
  EntrySlab& slab_;
  EntryList list_;
};
static_assert(EvictionOrder<Fifo>);

}  // namespace encore::cache

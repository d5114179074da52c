// LRU: the least recently used entry goes first (Denning 1968 and before).
#pragma once

#include "cache/entry_list.h"
#include "cache/eviction_order.h"

namespace encore::cache {

class Lru {
 public:
  explicit Lru(EntrySlab& slab) : slab_(slab) {}

  void insert(EntryRef ref, const Access& /*access*/) { list_.push_newest(slab_, ref); }

  void hit(EntryRef ref, const Access& /*access*/) {
    if (list_.newest() != ref) {
      list_.unlink(slab_, ref);
      list_.push_newest(slab_, ref);
    }
  }

  void remove(EntryRef ref, Removal /*why*/) { list_.unlink(slab_, ref); }

  EntryRef victim() { return list_.oldest(); }

 private:
  EntrySlab& slab_;
  EntryList list_;
};
static_assert(EvictionOrder<Lru>);

}  // namespace encore::cache

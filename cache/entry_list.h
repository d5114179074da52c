// EntryList: a list through the newer/older links of a slab's entries. Thread-compatible.
#pragma once

#include "cache/entry_slab.h"

namespace encore::cache {

class EntryList {
 public:
  EntryRef newest() const { return newest_; }
  EntryRef oldest() const { return oldest_; }

  void push_newest(EntrySlab& slab, EntryRef ref) {
    HotEntry& entry = slab.hot(ref);
    entry.newer = kNoEntry;
    entry.older = newest_;
    if (newest_ == kNoEntry) {
      oldest_ = ref;
    } else {
      slab.hot(newest_).newer = ref;
    }
    newest_ = ref;
  }

  void unlink(EntrySlab& slab, EntryRef ref) {
    const HotEntry& entry = slab.hot(ref);
    if (entry.newer == kNoEntry) {
      newest_ = entry.older;
    } else {
      slab.hot(entry.newer).older = entry.older;
    }
    if (entry.older == kNoEntry) {
      oldest_ = entry.newer;
    } else {
      slab.hot(entry.older).newer = entry.newer;
    }
  }

 private:
  EntryRef newest_ = kNoEntry;
  EntryRef oldest_ = kNoEntry;
};

}  // namespace encore::cache

// EntryList: a list through the newer/older links of a slab's entries, or of SideLinks where the
// slab's are used for something else. Thread-compatible.
#pragma once

#include "cache/chunked_vector.h"
#include "cache/entry_slab.h"

namespace encore::cache {

// Further links for each entry of a slab, 8 bytes.
class SideLinks {
 public:
  struct Links {
    EntryRef newer = kNoEntry;
    EntryRef older = kNoEntry;
  };
  // REQUIRES: cover(ref) was called.
  Links& hot(EntryRef ref) { return links_[ref]; }
  void cover(EntryRef ref) {
    while (links_.size() <= ref) {
      links_.push_back({});
    }
  }

 private:
  ChunkedVector<Links> links_;
};

class EntryList {
 public:
  EntryRef newest() const { return newest_; }
  EntryRef oldest() const { return oldest_; }

  // Inlined, as these few instructions are in the loops of all policies.
  template <typename Slab>
  [[gnu::always_inline]] void push_newest(Slab& slab, EntryRef ref) {
    auto& entry = slab.hot(ref);
    entry.newer = kNoEntry;
    entry.older = newest_;
    if (newest_ == kNoEntry) {
      oldest_ = ref;
    } else {
      slab.hot(newest_).newer = ref;
    }
    newest_ = ref;
  }

  template <typename Slab>
  [[gnu::always_inline]] void unlink(Slab& slab, EntryRef ref) {
    const auto& entry = slab.hot(ref);
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

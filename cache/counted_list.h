// CountedList: an EntryList that knows how many entries it has. Thread-compatible.
#pragma once

#include <cstdint>

#include "cache/entry_list.h"

namespace encore::cache {

class CountedList {
 public:
  EntryRef newest() const { return list_.newest(); }
  EntryRef oldest() const { return list_.oldest(); }
  std::uint32_t size() const { return size_; }
  template <typename Slab>
  void push_newest(Slab& slab, EntryRef ref) {
    list_.push_newest(slab, ref);
    ++size_;
  }
  template <typename Slab>
  void unlink(Slab& slab, EntryRef ref) {
    list_.unlink(slab, ref);
    --size_;
  }

 private:
  EntryList list_;
  std::uint32_t size_ = 0;
};

}  // namespace encore::cache

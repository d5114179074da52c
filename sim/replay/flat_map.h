// FlatMap: an open-addressing map from hashes to small values; grows by doubling, never shrinks.
// Thread-compatible. Pointers to values are good until the next insertion.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "filter/hash.h"

namespace encore::sim {

template <typename Value>
class FlatMap {
 public:
  struct Slot {
    filter::Hash128 key;
    Value value{};
    bool used = false;
  };

  explicit FlatMap(std::size_t slots = 1024) : slots_(slots) {}

  // The value of the key, made by default if it is not there.
  std::pair<Value*, bool> insert(const filter::Hash128& key) {
    if ((size_ + 1) * 4 > slots_.size() * 3) {
      grow();
    }
    Slot& slot = slots_[place(key)];
    const bool is_new = !slot.used;
    if (is_new) {
      slot.key = key;
      slot.used = true;
      ++size_;
    }
    return {&slot.value, is_new};
  }
  Value* find(const filter::Hash128& key) {
    Slot& slot = slots_[place(key)];
    return slot.used ? &slot.value : nullptr;
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.used) {
        visit(slot.key, slot.value);
      }
    }
  }
  std::size_t size() const { return size_; }
  std::size_t memory_bytes() const { return slots_.size() * sizeof(Slot); }

 private:
  // Returns the slot of the key, or the free one for it. The number of slots is a power of two.
  std::size_t place(const filter::Hash128& key) const {
    std::size_t at = filter::remix(key) & (slots_.size() - 1);
    while (slots_[at].used && slots_[at].key != key) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return at;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (Slot& slot : old) {
      if (slot.used) {
        slots_[place(slot.key)] = std::move(slot);
      }
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace encore::sim

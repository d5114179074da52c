// GhostQueue: keys of entries that were evicted, first in first out, for policies that look back.
// 29 to 51 bytes a key. The map is in parts that grow one by one, so that no insertion is a pause.
// Thread-compatible.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/prefetch.h"
#include "filter/hash.h"

namespace encore::cache {

// Numbers by mixed keys: open addressing with linear probing, at most three quarters full.
class GhostMap {
 public:
  // Returns whether the key is a new one.
  bool set(std::uint64_t key, std::uint64_t number) {
    if ((size_ + 1) * 4 > slots_.size() * 3) {
      grow();
    }
    Slot& slot = slots_[place(key)];
    const bool is_new = slot.number == kFree;
    slot = {key, number};
    size_ += is_new ? 1U : 0U;
    return is_new;
  }
  // Erases it. Returns its number; 0: it was not there.
  std::uint64_t take(std::uint64_t key) {
    std::uint64_t number = 0;
    erase_where(key, [&](std::uint64_t its) {
      number = its;
      return true;
    });
    return number;
  }
  // True if it was there; with a number: if that was its number.
  bool erase(std::uint64_t key) {
    return erase_where(key, [](std::uint64_t) { return true; });
  }
  bool erase(std::uint64_t key, std::uint64_t number) {
    return erase_where(key, [number](std::uint64_t its) { return its == number; });
  }
  // Asks for the memory that a search for the key begins with.
  void prefetch(std::uint64_t key) const {
    if (!slots_.empty()) {
      encore::prefetch(&slots_[home_of(key)]);
    }
  }
  bool has(std::uint64_t key, std::uint64_t number) const {
    return size_ != 0 && slots_[place(key)].number == number;
  }

 private:
  static constexpr std::uint64_t kFree = UINT64_MAX;
  struct Slot {
    std::uint64_t key = 0;
    std::uint64_t number = kFree;
  };
  template <typename Accepts>
  bool erase_where(std::uint64_t key, const Accepts& accepts) {
    if (size_ == 0) {
      return false;
    }
    std::size_t hole = place(key);
    if (slots_[hole].number == kFree || !accepts(slots_[hole].number)) {
      return false;
    }
    // Those behind it that a search would not find any more move up.
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = (hole + 1) & mask; slots_[at].number != kFree; at = (at + 1) & mask) {
      const std::size_t home = home_of(slots_[at].key);
      if (((at - home) & mask) >= ((at - hole) & mask)) {
        slots_[hole] = slots_[at];
        hole = at;
      }
    }
    slots_[hole].number = kFree;
    --size_;
    return true;
  }
  // The lowest bits choose the part.
  std::size_t home_of(std::uint64_t key) const { return (key >> 8U) & (slots_.size() - 1); }
  // Returns the slot of the key, or the free one for it. REQUIRES: there are slots.
  std::size_t place(std::uint64_t key) const {
    std::size_t at = home_of(key);
    while (slots_[at].number != kFree && slots_[at].key != key) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return at;
  }
  void grow() {
    std::vector<Slot> before(slots_.empty() ? 8 : slots_.size() * 2);
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.number != kFree) {
        slots_[place(slot.key)] = slot;
      }
    }
  }

  std::vector<Slot> slots_;  // a power of two, or none
  std::size_t size_ = 0;
};

class GhostQueue {
 public:
  std::size_t size() const { return size_; }

  void insert(const filter::Hash128& key) {
    const std::uint64_t mixed = filter::remix(key);
    size_ += part(mixed).set(mixed, first_ + order_.size()) ? 1U : 0U;
    order_.push_back(mixed);
  }
  // Asks for the memory that take() or insert() will need.
  void prefetch(const filter::Hash128& key) const {
    const std::uint64_t mixed = filter::remix(key);
    parts_[mixed % kParts].prefetch(mixed);
  }
  // True if it was there; it is not now.
  bool take(const filter::Hash128& key) {
    const std::uint64_t mixed = filter::remix(key);
    const bool was_there = part(mixed).erase(mixed);
    size_ -= was_there ? 1U : 0U;
    return was_there;
  }
  // Drops the oldest until no more than `size` are left.
  void shrink_to(std::size_t size) {
    while (size_ > size) {
      // Else it was taken, or inserted again since.
      size_ -= part(order_.front()).erase(order_.front(), first_) ? 1U : 0U;
      drop_first();
    }
    // So do the places of what was taken, once they are many: each look costs a search.
    while (order_.size() > size_ + size_ / 4 + kParts &&
           !part(order_.front()).has(order_.front(), first_)) {
      drop_first();
    }
  }

 private:
  static constexpr std::size_t kParts = 64;
  void drop_first() {
    order_.pop_front();
    ++first_;
  }
  GhostMap& part(std::uint64_t mixed) { return parts_[mixed % kParts]; }

  std::array<GhostMap, kParts> parts_;
  std::size_t size_ = 0;
  std::deque<std::uint64_t> order_;  // mixed keys; a key's number is that of its place
  std::uint64_t first_ = 0;          // number of the first place
};

}  // namespace encore::cache

// DiskCopies: which objects of the disk are in memory as well, without bytes: those that were hit
// there again. The least recently used leaves. A copy saves a read and changes no decision on what
// is written, moved or dropped. Thread-compatible.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

#include "cache/waiting_queue.h"
#include "filter/hash.h"

namespace encore::cache {

class DiskCopies {
 public:
  explicit DiskCopies(std::uint64_t size_bytes) : size_bytes_(size_bytes) {}

  // True if there is a copy of the key; it is the most recently used now.
  bool use(const filter::Hash128& key);
  // Makes a copy, and drops others for it; none of an object that is larger than all of the room.
  // REQUIRES: there is none of the key.
  void add(const filter::Hash128& key, std::uint64_t size_bytes);
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t objects() const { return places_.size(); }

 private:
  struct Copy {
    filter::Hash128 key{};
    std::uint64_t size_bytes = 0;
  };
  std::uint64_t size_bytes_;
  std::uint64_t bytes_ = 0;
  std::list<Copy> copies_;  // most recently used first
  std::unordered_map<filter::Hash128, std::list<Copy>::iterator, KeyPlacing> places_;
};

}  // namespace encore::cache

// WantedParts: the parts of bodies that readers are on their way to. A reclaim moves them on as it
// does what is being read, but waits for nobody: a reader finds a part by its key, wherever it lies
// by then. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/mutex.h"
#include "cache/types.h"
#include "filter/hash.h"

namespace encore::disk {

class WantedParts {
 public:
  struct Body {
    filter::Hash128 object;    // the key of what it is the body of
    std::uint64_t number = 0;  // Disks::new_body_number()
    std::uint64_t length = 0;
    std::uint32_t from = 0;  // parts [from, to)
    std::uint32_t to = 0;
  };
  using Number = std::uint64_t;

  // How many bytes may be wanted of all bodies together; before any is.
  void set_most(std::uint64_t bytes) ENCORE_EXCLUDES(mutex_);
  // 0: what is wanted would be too much with these, which are not.
  Number add(const Body& body) ENCORE_EXCLUDES(mutex_);
  // The first ones are not wanted any more. Both accept 0.
  void advance(Number number, std::uint32_t from) ENCORE_EXCLUDES(mutex_);
  void remove(Number number) ENCORE_EXCLUDES(mutex_);

  // Their keys (cache::part_key), of each reader.
  std::vector<cache::Key> keys() const ENCORE_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<Number, Body> bodies_ ENCORE_GUARDED_BY(mutex_);
  Number last_ ENCORE_GUARDED_BY(mutex_) = 0;
  std::uint64_t bytes_ ENCORE_GUARDED_BY(mutex_) = 0;
  std::uint64_t most_ ENCORE_GUARDED_BY(mutex_) = 0;
};

}  // namespace encore::disk

// KeySet: a set of hashes of 128 bits, 21 to 43 bytes each. Thread-compatible.
#pragma once

#include <cstddef>
#include <vector>

#include "filter/hash.h"

namespace encore::disk {

class KeySet {
 public:
  // False: it was there already.
  bool insert(const filter::Hash128& key);
  bool contains(const filter::Hash128& key) const;
  std::size_t size() const { return size_; }

 private:
  // Returns its slot, or the free one for it.
  std::size_t slot(const filter::Hash128& key) const;
  void grow();

  std::vector<filter::Hash128> slots_ = std::vector<filter::Hash128>(64);  // zeros: empty
  std::size_t size_ = 0;
  bool has_zero_ = false;
};

}  // namespace encore::disk

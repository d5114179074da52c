#include "proxy/disk/cli/key_set.h"

#include <utility>

namespace encore::disk {

std::size_t KeySet::slot(const filter::Hash128& key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = static_cast<std::size_t>(key.lo) & mask;
  while (slots_[at] != filter::Hash128{} && slots_[at] != key) at = (at + 1) & mask;
  return at;
}

bool KeySet::contains(const filter::Hash128& key) const {
  return key == filter::Hash128{} ? has_zero_ : slots_[slot(key)] == key;
}

bool KeySet::insert(const filter::Hash128& key) {
  if (contains(key)) return false;
  ++size_;
  if (key == filter::Hash128{}) return has_zero_ = true;
  // At most three of four are taken.
  if (4 * size_ > 3 * slots_.size()) grow();
  slots_[slot(key)] = key;
  return true;
}

void KeySet::grow() {
  const auto before = std::exchange(slots_, std::vector<filter::Hash128>(2 * slots_.size()));
  for (const filter::Hash128& key : before) {
    if (key != filter::Hash128{}) slots_[slot(key)] = key;
  }
}

}  // namespace encore::disk

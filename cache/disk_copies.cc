#include "cache/disk_copies.h"

#include "base/check.h"

namespace encore::cache {

bool DiskCopies::use(const filter::Hash128& key) {
  const auto found = places_.find(key);
  if (found == places_.end()) {
    return false;
  }
  copies_.splice(copies_.begin(), copies_, found->second);
  return true;
}

void DiskCopies::add(const filter::Hash128& key, std::uint64_t size_bytes) {
  if (size_bytes > size_bytes_) {
    return;
  }
  copies_.push_front({.key = key, .size_bytes = size_bytes});
  const bool is_new = places_.emplace(key, copies_.begin()).second;
  ENCORE_CHECK(is_new, "an object has one copy");
  bytes_ += size_bytes;
  while (bytes_ > size_bytes_) {
    const Copy& oldest = copies_.back();
    bytes_ -= oldest.size_bytes;
    places_.erase(oldest.key);
    copies_.pop_back();
  }
}

}  // namespace encore::cache

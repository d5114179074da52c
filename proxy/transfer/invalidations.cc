#include "proxy/transfer/invalidations.h"

namespace encore::server {
namespace {

void raise_to(std::atomic<std::uint64_t>& slot, std::uint64_t count) {
  // The higher count of two that come at the same time stays.
  std::uint64_t before = slot.load();
  while (before < count && !slot.compare_exchange_weak(before, count)) {
  }
}

}  // namespace

// The caller removes stored objects after this returns, so either answer is right in between.
void Invalidations::add(const filter::Hash128& hash) {
  raise_to(last_[slot_of(hash)], count_.fetch_add(1) + 1);
}

void Invalidations::add_all() { raise_to(last_of_all_, count_.fetch_add(1) + 1); }

bool Invalidations::has_since(const filter::Hash128& hash, std::uint64_t seen) const {
  if (count() == seen) return false;
  if (last_of_all_.load() > seen) return true;
  return last_[slot_of(hash)].load() > seen;
}

}  // namespace encore::server

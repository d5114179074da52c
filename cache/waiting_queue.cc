#include "cache/waiting_queue.h"

#include "base/check.h"

namespace encore::cache {

Waiting* WaitingQueue::find(const filter::Hash128& key) {
  const auto found = places_.find(key);
  return found == places_.end() ? nullptr : &slots_[found->second - first_].entry;
}

const Waiting* WaitingQueue::oldest() const {
  return slots_.empty() ? nullptr : &slots_.front().entry;
}

void WaitingQueue::push(const Waiting& entry) {
  const bool is_new = places_.emplace(entry.key, first_ + slots_.size()).second;
  ENCORE_CHECK(is_new, "a key waits once");
  slots_.push_back({.entry = entry});
  if (!entry.only_key) {
    ++objects_;
    object_bytes_ += entry.size_bytes;
  }
}

Waiting WaitingQueue::pop() {
  ENCORE_CHECK(!slots_.empty(), "an empty queue has no oldest entry");
  ENCORE_CHECK(!slots_.front().erased, "the oldest entry waits");
  const Waiting entry = slots_.front().entry;
  forget(entry);
  slots_.pop_front();
  ++first_;
  drop_erased();
  return entry;
}

bool WaitingQueue::erase(const filter::Hash128& key) {
  const auto found = places_.find(key);
  if (found == places_.end()) {
    return false;
  }
  Slot& slot = slots_[found->second - first_];
  slot.erased = true;
  forget(slot.entry);
  drop_erased();
  return true;
}

void WaitingQueue::resize(Waiting& entry, std::uint64_t size_bytes) {
  ENCORE_CHECK(!entry.only_key, "only objects take the memory of their size");
  object_bytes_ += size_bytes - entry.size_bytes;
  entry.size_bytes = size_bytes;
}

void WaitingQueue::forget(const Waiting& entry) {
  const std::size_t erased = places_.erase(entry.key);
  ENCORE_CHECK(erased == 1, "an entry leaves once");
  if (!entry.only_key) {
    ENCORE_CHECK(objects_ != 0 && object_bytes_ >= entry.size_bytes, "an object was counted");
    --objects_;
    object_bytes_ -= entry.size_bytes;
  }
}

void WaitingQueue::drop_erased() {
  while (!slots_.empty() && slots_.front().erased) {
    slots_.pop_front();
    ++first_;
  }
}

std::uint64_t WaitingQueue::memory_bytes() const {
  // A node has a key, a number and a link, and a bucket points to it.
  constexpr std::uint64_t kNodeBytes = sizeof(filter::Hash128) + 3 * sizeof(std::uint64_t);
  return slots_.size() * sizeof(Slot) + places_.size() * kNodeBytes;
}

}  // namespace encore::cache

#include "proxy/disk/write_queue.h"

#include <utility>

#include "base/check.h"

namespace encore::disk {

bool WriteQueue::put(std::uint64_t order, PendingWrite wanted) {
  std::unique_ptr<RecordSource> given_up;
  const MutexLock lock(mutex_);
  if (wanted.source != nullptr) {
    // A caller that has not seen in time that it is full has a little more, and then nothing.
    if (bytes_.load() + wanted.place.bytes > 2 * bytes_max_) {
      given_up = std::move(wanted.source);
    } else {
      bytes_ += wanted.place.bytes;
    }
  }
  urgent_ += is_urgent(wanted) ? 1U : 0U;
  const bool is_new = order >= next_ && waiting_.emplace(order, std::move(wanted)).second;
  ENCORE_CHECK(is_new, "each place of a disk is told once");
  const bool is_worth_it = urgent_ != 0 || bytes_.load() >= batch_bytes_;
  return is_worth_it && waiting_.begin()->first == next_ && !std::exchange(is_taken_, true);
}

std::optional<PendingWrite> WriteQueue::take() {
  const MutexLock lock(mutex_);
  is_taken_ = !waiting_.empty() && waiting_.begin()->first == next_;
  return is_taken_ ? take_first() : std::nullopt;
}

std::optional<PendingWrite> WriteQueue::take_any() {
  const MutexLock lock(mutex_);
  return waiting_.empty() ? std::nullopt : take_first();
}

std::optional<PendingWrite> WriteQueue::take_first() {
  const auto first = waiting_.begin();
  ENCORE_CHECK(first->first >= next_, "places are written in their order");
  next_ = first->first + 1;
  PendingWrite next = std::move(first->second);
  waiting_.erase(first);
  if (next.source != nullptr) {
    ENCORE_CHECK(bytes_.load() >= next.place.bytes, "the bytes of a source were counted");
    bytes_ -= next.place.bytes;
  }
  if (is_urgent(next)) {
    ENCORE_CHECK(urgent_ != 0, "what is urgent was counted");
    --urgent_;
  }
  return next;
}

}  // namespace encore::disk

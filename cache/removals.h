// Removals: what left the cache in one critical section. The sums go to the budget and into the
// event; the payloads go back to their owner when the locks are dropped. Confined to one call.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "cache/events.h"
#include "cache/options.h"
#include "cache/payload_owner.h"
#include "cache/types.h"

namespace encore::cache {

class Removals {
 public:
  // A chain at its bound, and one step's victims: what one critical section removes at most.
  static constexpr std::uint32_t kVictimsMax = 256;
  static constexpr std::uint32_t kMax = kVariantsMax + kVictimsMax;

  // `owner` may be null.
  explicit Removals(PayloadOwner* owner) : owner_(owner) {}
  ~Removals() {
    if (evicted_ != 0) {
      owner_->note_evicted(std::span(payloads_.data(), evicted_));
    }
    if (payload_count_ != 0) {
      owner_->release(std::span(payloads_.data(), payload_count_));
    }
  }
  Removals(const Removals&) = delete;
  Removals& operator=(const Removals&) = delete;

  void add(const EntryView& entry) {
    ++count_;
    bytes_ += entry.charge_bytes;
    digest_ ^= filter::remix({entry.key.lo ^ entry.variant, entry.key.hi});
    add_payload(entry.payload);
  }
  // A payload that was replaced while its entry stays.
  void add_payload(Payload payload) {
    if (owner_ != nullptr) {
      payloads_[payload_count_++] = payload;
    }
  }

  // Marks everything added so far as evicted to free space.
  void mark_evicted() { evicted_ = payload_count_; }

  std::uint32_t count() const { return count_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t digest() const { return digest_; }

 private:
  PayloadOwner* owner_;
  std::uint32_t count_ = 0;
  std::uint32_t payload_count_ = 0;
  std::uint32_t evicted_ = 0;  // number of payloads that were evicted; they come first
  std::uint64_t bytes_ = 0;
  std::uint64_t digest_ = 0;
  // Not initialised: a lookup that removes nothing must not pay for it.
  std::array<Payload, kMax> payloads_;
};

inline void put_removals(const Removals& gone, Event& event) {
  event.removed = gone.count();
  event.freed_bytes = gone.bytes();
  event.removed_digest = gone.digest();
}

}  // namespace encore::cache

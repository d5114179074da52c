// Replay: applies a journal's events to a fresh kernel and compares every decision. Confined to one
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "cache/events.h"
#include "cache/journal.h"
#include "cache/kernel.h"
#include "cache/saved_admission.h"

namespace encore::cache {

class Replay {
 public:
  // Finds the saved state that a restore or an adopt event read, by its checksum; empty if it is
  // not at hand.
  using FindState = std::function<std::string(std::uint64_t checksum)>;

  // `identity` is the seed, or zero where head.identity_filter. Errors: the seed is not the one of
  // the fingerprint where it is needed; options that a kernel refuses.
  static Result<std::unique_ptr<Replay>> create(const JournalHead& head,
                                                const filter::Seed& identity, FindState find_state);
  ~Replay();

  // Does what the event says. Nothing if the kernel decided the same, else what it did instead.
  // Errors: an event that cannot be applied (a restore or an adoption without its state).
  struct Difference {
    Event recorded;
    Event replayed;
  };
  Result<std::optional<Difference>> apply(const Event& event);

  const Kernel& kernel() const { return *kernel_; }

 private:
  class Capture;
  Replay();
  Result<void> dispatch(const Event& event);
  Result<void> dispatch_rare(const Event& event);
  Result<void> dispatch_disk(const Event& event);
  Result<void> dispatch_given(const Event& event);
  Result<void> adopt(const Event& event);
  void grow(const Event& event);

  std::unique_ptr<Capture> capture_;
  std::unique_ptr<Kernel> kernel_;
  filter::Seed identity_;
  FindState find_state_;
  Adoptable adoptable_;  // from the last adopt event: there is one for each shard
};

// "lookup 17 of shard 3: recorded fresh, variant 5; replayed miss", for people.
std::string describe(const Replay::Difference& difference);

}  // namespace encore::cache

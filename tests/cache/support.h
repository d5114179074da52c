// Shared parts of the kernel's tests.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <unordered_map>

#include "cache/kernel.h"
#include "tests/catch.h"

namespace encore::cache::test {

inline constexpr filter::Seed kSeed{0x1234, 0x5678};

inline MonotonicTime at(std::int64_t seconds) {
  return MonotonicTime(std::chrono::seconds(seconds));
}

// The key of number i; its text lives as long as the program.
inline Key key(std::uint64_t i) {
  thread_local std::unordered_map<std::uint64_t, std::unique_ptr<std::string>> texts;
  std::unique_ptr<std::string>& text = texts[i];
  if (text == nullptr) {
    text = std::make_unique<std::string>("http://origin.test/" + std::to_string(i));
  }
  return filter::identify(kSeed, *text);
}

// One shard, no overhead, everything admitted: charges are what the test says.
inline KernelOptions plain_options(std::uint64_t capacity_bytes) {
  KernelOptions options;
  options.capacity_bytes = capacity_bytes;
  options.max_object_share = 1;
  options.shards = 1;
  options.entry_overhead_bytes = 0;
  options.admission.policy = AdmissionPolicy::kAlways;
  options.admission.filter = {.layout = filter::Layout::kSplit,
                              .hash = filter::HashFamily::kXxh3,
                              .bits = 1 << 16,
                              .hashes = 8,
                              .capacity = 1000,
                              .seed = kSeed};
  options.admission.shadow_one_in = 1;
  options.identity_seed = kSeed;
  return options;
}

inline std::unique_ptr<Kernel> make_kernel(const KernelOptions& options, Kernel::Hooks hooks = {}) {
  auto kernel = Kernel::create(options, hooks, at(0));
  REQUIRE(kernel);
  return std::move(*kernel);
}

// Counts for every payload how often it was given back.
class CountingOwner final : public PayloadOwner {
 public:
  void release(std::span<const Payload> payloads) override {
    const std::lock_guard lock(mutex_);
    for (const Payload payload : payloads) {
      ++released_[payload];
      ++total_;
    }
  }
  void note_evicted(std::span<const Payload> payloads) override {
    const std::lock_guard lock(mutex_);
    for (const Payload payload : payloads) {
      if (released_[payload] == 0) ++evicted_;
    }
  }
  // Those that were reported before they were returned.
  std::uint64_t evicted() {
    const std::lock_guard lock(mutex_);
    return evicted_;
  }
  std::uint64_t released(Payload payload) {
    const std::lock_guard lock(mutex_);
    return released_[payload];
  }
  std::uint64_t total() {
    const std::lock_guard lock(mutex_);
    return total_;
  }
  bool each_once() {
    const std::lock_guard lock(mutex_);
    for (const auto& [payload, count] : released_) {
      if (count > 1) {
        return false;
      }
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<Payload, std::uint64_t> released_;
  std::uint64_t total_ = 0;
  std::uint64_t evicted_ = 0;
};

// Selects one payload.
class Select final : public Selector {
 public:
  explicit Select(Payload payload) : payload_(payload) {}
  bool matches(Payload payload) override {
    ++asked;
    return payload == payload_;
  }
  int asked = 0;

 private:
  Payload payload_;
};

// Reserves and commits.
inline CommitOutcome store(Kernel& kernel, const Key& key, const Stored& stored,
                           MonotonicTime now) {
  return kernel.commit(key, stored, 0, now);
}

}  // namespace encore::cache::test

// ServerCounters: what has become of the requests to one server of an origin. All workers count.
// Thread-safe, relaxed.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/time.h"

namespace encore::server {

//  member             meaning
#define ENCORE_SERVER_COUNTERS(X)                                  \
  X(sent, "requests sent")                                         \
  X(received_bytes, "bytes received")                              \
  X(connects, "connections opened")                                \
  X(connect_microseconds, "what they took, TLS included")          \
  X(answers, "final response heads")                               \
  X(answer_microseconds, "from the request until they were there") \
  X(errors_4xx, "of these, with a status of 400 to 499")           \
  X(errors_5xx, "of these, with a status of 500 or more")          \
  X(retries, "requests that were sent again, or elsewhere, as it failed")

class ServerCounters {
 public:
  static constexpr std::size_t kErrorBytes = 256;

#define ENCORE_MEMBER(member, meaning) std::atomic<std::uint64_t> member = 0;
  ENCORE_SERVER_COUNTERS(ENCORE_MEMBER)
#undef ENCORE_MEMBER

  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount = 1) {
    counter.fetch_add(amount, std::memory_order_relaxed);
  }
  static void add_time(std::atomic<std::uint64_t>& counter, Nanoseconds time) {
    const auto whole = std::chrono::floor<std::chrono::microseconds>(time).count();
    add(counter, static_cast<std::uint64_t>(whole < 0 ? 0 : whole));
  }

  struct Failure {
    std::string why;  // empty: there was none
    WallTime when{};
  };
  void note_failure(std::string_view why, WallTime when) {
    const MutexLock lock(mutex_);
    failure_.why.assign(why.substr(0, kErrorBytes));
    failure_.when = when;
  }
  Failure last_failure() const {
    const MutexLock lock(mutex_);
    return failure_;
  }

 private:
  mutable Mutex mutex_;
  Failure failure_ ENCORE_GUARDED_BY(mutex_);
};

}  // namespace encore::server

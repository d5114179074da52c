// ServerCounters: what has become of the requests to one server of an origin. Each worker counts
// for itself; thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/time.h"
#include "proxy/observe/counter.h"
#include "proxy/observe/per_worker.h"

namespace encore::server {

//  member             meaning
#define ENCORE_SERVER_COUNTERS(X)                                  \
  X(sent, "requests sent")                                         \
  X(sent_bytes, "bytes sent")                                      \
  X(received_bytes, "bytes received")                              \
  X(connects, "connections opened")                                \
  X(connect_microseconds, "what they took, TLS included")          \
  X(answers, "final response heads")                               \
  X(answer_microseconds, "from the request until they were there") \
  X(errors_4xx, "of these, with a status of 400 to 499")           \
  X(errors_5xx, "of these, with a status of 500 or more")          \
  X(retries, "requests that were sent again, or elsewhere, as it failed")

//  enumerator       name in metrics     meaning
#define ENCORE_SERVER_FAILURES(X)                                             \
  X(kName, "name", "its name led to no address")                              \
  X(kConnect, "connect", "no connection came about")                          \
  X(kConnectTimeout, "connect-timeout", "none came about in time")            \
  X(kTls, "tls", "it and we did not come to speak TLS")                       \
  X(kBusy, "busy", "it had as many connections as it may")                    \
  X(kClosed, "closed", "the connection ended before an answer was there")     \
  X(kSilent, "no-answer", "no answer came in time")                           \
  X(kInvalid, "invalid", "what came is no answer, or not what was asked for") \
  X(kBroken, "broken", "an answer that broke off, or stood still")

enum class ServerFailure : std::uint8_t {
#define ENCORE_ENUMERATOR(id, name, meaning) id,
  ENCORE_SERVER_FAILURES(ENCORE_ENUMERATOR)
#undef ENCORE_ENUMERATOR
};
inline constexpr std::array kServerFailureNames = {
#define ENCORE_NAME(id, name, meaning) std::string_view(name),
    ENCORE_SERVER_FAILURES(ENCORE_NAME)
#undef ENCORE_NAME
};
inline constexpr std::size_t kServerFailureCount = kServerFailureNames.size();

// Upper bounds of the buckets of response times, in seconds: from a server next to us to one that
// is about to time out.
inline constexpr std::array kAnswerBounds = {0.0005,
                                             0.001,
                                             0.0025,
                                             0.005,
                                             0.01,
                                             0.025,
                                             0.05,
                                             0.1,
                                             0.25,
                                             0.5,
                                             1.0,
                                             2.5,
                                             5.0,
                                             10.0,
                                             30.0,
                                             60.0,
                                             std::numeric_limits<double>::infinity()};
inline constexpr std::size_t kAnswerBuckets = kAnswerBounds.size();
std::size_t answer_bucket(Nanoseconds time) noexcept;

// One worker's part.
struct ServerCounts {
#define ENCORE_MEMBER(member, meaning) Counter member;
  ENCORE_SERVER_COUNTERS(ENCORE_MEMBER)
#undef ENCORE_MEMBER
  Counter connections;  // open now
  std::array<Counter, kServerFailureCount> failures;
  std::array<Counter, kAnswerBuckets> answer_times;
};

// The same, added up. A value.
struct ServerSums {
#define ENCORE_MEMBER(member, meaning) std::uint64_t member = 0;
  ENCORE_SERVER_COUNTERS(ENCORE_MEMBER)
#undef ENCORE_MEMBER
  std::uint64_t connections = 0;
  std::array<std::uint64_t, kServerFailureCount> failures{};
  std::array<std::uint64_t, kAnswerBuckets> answer_times{};

  void add(const ServerCounts& part);
};

class ServerCounters {
 public:
  static constexpr std::size_t kErrorBytes = 256;

  explicit ServerCounters(std::size_t workers = 1) : parts_(workers) {}

  ServerCounts& of(std::size_t worker) { return parts_.of(worker); }
  ServerSums sums() const;

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
  PerWorker<ServerCounts> parts_;
  mutable Mutex mutex_;
  Failure failure_ ENCORE_GUARDED_BY(mutex_);
};

// Counters of one upstream server in a worker: its own, and those of the servers without series if
// it has none. Both are borrowed.
class ServerTally {
 public:
  ServerTally() = default;
  // `others` is null where the server has series of its own.
  ServerTally(ServerCounters* own, ServerCounters* others, std::size_t worker)
      : own_(own), others_(others), worker_(worker) {}

  void add(Counter ServerCounts::* member, std::uint64_t amount = 1) const {
    each([&](ServerCounts& part) { (part.*member).add(amount); });
  }
  void subtract(Counter ServerCounts::* member) const {
    each([&](ServerCounts& part) { (part.*member).subtract(); });
  }
  void add_time(Counter ServerCounts::* member, Nanoseconds time) const {
    const auto whole = std::chrono::floor<std::chrono::microseconds>(time).count();
    add(member, static_cast<std::uint64_t>(whole < 0 ? 0 : whole));
  }
  void add_failure(ServerFailure kind) const {
    each([&](ServerCounts& part) { part.failures.at(static_cast<std::size_t>(kind)).add(); });
  }
  // A final head with this status, so long after its request.
  void add_answer(int status, Nanoseconds time) const;
  void note_failure(std::string_view why, WallTime when) const {
    if (own_ != nullptr) own_->note_failure(why, when);
  }

 private:
  template <typename F>
  void each(F&& count) const {
    if (own_ != nullptr) count(own_->of(worker_));
    if (others_ != nullptr) count(others_->of(worker_));
  }

  ServerCounters* own_ = nullptr;  // null: there is no server to count for
  ServerCounters* others_ = nullptr;
  std::size_t worker_ = 0;
};

}  // namespace encore::server

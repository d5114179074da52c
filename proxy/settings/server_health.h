// ServerHealth: the state of one server of an origin: whether it is set aside because requests to
// it failed, and until when, and whether checks found it down. Pure: it receives the time and the
// random numbers. Thread-compatible; its group guards it.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace encore::server {

// When a server is set aside, and for how long.
struct EjectionPolicy {
  std::uint32_t after = 1;  // failures in a row
  Nanoseconds rest{};       // the first time; 0: never
  Nanoseconds rest_max{};
};

// Returns how long a server rests that was set aside `times` before without an answer since. The
// time doubles each time, up to a maximum, plus up to a tenth at random, so that not all proxies
// try it at the same time.
Nanoseconds back_off(const EjectionPolicy& policy, std::uint32_t times, std::uint64_t random);

class ServerHealth {
 public:
  // It is asked as others are.
  bool is_in_turn() const { return !down_ && until_ == MonotonicTime{}; }
  bool is_down() const { return down_; }
  bool is_ejected() const { return until_ != MonotonicTime{}; }
  // Until when it is set aside. REQUIRES: is_ejected().
  MonotonicTime until() const { return until_; }

  // The requests that may test whether it responds again, as soon as its time is up: those that can
  // go on to another server if not. Others only if none has for as long again.
  enum class ProbeFailover : std::uint8_t { kCanGoOn, kCannot };
  bool is_due(MonotonicTime now, ProbeFailover trier) const;
  // One request tries it: others leave it alone for as long as before. REQUIRES: is_due().
  void begin_probe(MonotonicTime now);

  // The group's permission: never for the last server.
  enum class Others : std::uint8_t { kAreInTurn, kNone };
  // A request to it failed. True: it is set aside now, and was not before.
  bool fail(MonotonicTime now, const EjectionPolicy& policy, std::uint64_t random, Others others);
  // It answered. True: it was set aside.
  bool succeed(MonotonicTime now);
  // Checks say so. True: this is news.
  bool set_down(bool down, MonotonicTime now);

  // Its effective part of its weight, in hundredths: all of it, except that a returning server
  // begins with a tenth.
  std::uint32_t share(MonotonicTime now, Nanoseconds slow_start) const;
  // Nothing is known against it, so that an answer is no news.
  bool is_clean() const { return failures_ == 0 && !is_ejected(); }

 private:
  void come_back(MonotonicTime now);

  bool down_ = false;
  bool trying_ = false;         // a request finds out whether it answers again
  std::uint32_t failures_ = 0;  // in a row
  std::uint32_t times_ = 0;     // it was set aside, without an answer since
  Nanoseconds rest_{};          // length of the last rest
  MonotonicTime until_{};       // zero: not set aside
  MonotonicTime back_since_{};  // zero: it never came back
};

}  // namespace encore::server

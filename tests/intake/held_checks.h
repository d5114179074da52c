// HeldChecks: keeps the threads that hash passwords busy until a test lets them go, so that logins
// wait for as long as the test says, on a machine of any speed.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <string>

#include "base/mutex.h"
#include "proxy/intake/password_checks.h"
#include "tests/catch.h"

namespace encore::server {

class HeldChecks {
 public:
  // `checks` has to live longer.
  explicit HeldChecks(PasswordChecks& checks) {
    for (std::size_t i = 0; i < PasswordChecks::kHashedMax; ++i) {
      const bool taken = checks.check({
          .client = "held",
          .login = {.scheme = Login::Scheme::kBasic, .name = "held", .secret = "x"},
          .hash = "$2y$04$o7a32LtrLk7cLYVa2tWvvuNuGjv5ZEqlqmcmgXtp43nGtcdDlIgTm",
          .known = true,
          .done = [this](LoginVerdict /*verdict*/) { hold(); },
      });
      REQUIRE(taken);
    }
    const MutexLock lock(mutex_);
    wait([this] { return entered_ == PasswordChecks::kHashedMax; });
  }
  ~HeldChecks() {
    const MutexLock lock(mutex_);
    may_go_ = PasswordChecks::kHashedMax;
    wake_.notify_all();
    wait([this] { return left_ == PasswordChecks::kHashedMax; });
  }
  HeldChecks(const HeldChecks&) = delete;
  HeldChecks& operator=(const HeldChecks&) = delete;

  // So many threads may go on.
  void let_go(std::size_t count = PasswordChecks::kHashedMax) {
    const MutexLock lock(mutex_);
    may_go_ += count;
    wake_.notify_all();
  }

 private:
  void hold() {
    const MutexLock lock(mutex_);
    ++entered_;
    wake_.notify_all();
    wait([this] { return may_go_ != 0; });
    --may_go_;
    ++left_;
    wake_.notify_all();
  }
  template <typename Done>
  void wait(Done done) ENCORE_NO_THREAD_SAFETY_ANALYSIS {
    while (!done()) wake_.wait(mutex_);
  }

  Mutex mutex_;
  std::condition_variable_any wake_;
  std::size_t entered_ = 0;
  std::size_t left_ = 0;
  std::size_t may_go_ = 0;
};

}  // namespace encore::server

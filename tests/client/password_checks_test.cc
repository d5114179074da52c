#include "proxy/client/password_checks.h"

#include <condition_variable>
#include <string>

#include "base/mutex.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

// Of "secret"; the second has a cost that takes some 200 ms to find wrong.
const std::string kQuick = "$2y$04$o7a32LtrLk7cLYVa2tWvvuNuGjv5ZEqlqmcmgXtp43nGtcdDlIgTm";
const std::string kSlow = "$2y$12$o7a32LtrLk7cLYVa2tWvvuNuGjv5ZEqlqmcmgXtp43nGtcdDlIgTm";

Login login(const std::string& secret) {
  return {.scheme = Login::Scheme::kBasic, .name = "ann", .secret = secret};
}

// What one check comes to.
class Outcome {
 public:
  PasswordChecks::Done taker() {
    return [this](bool right) {
      const MutexLock lock(mutex_);
      right_ = right;
      known_ = true;
      wake_.notify_all();
    };
  }
  bool wait() ENCORE_NO_THREAD_SAFETY_ANALYSIS {
    const MutexLock lock(mutex_);
    while (!known_) wake_.wait(mutex_);
    return right_;
  }

 private:
  Mutex mutex_;
  std::condition_variable_any wake_;
  bool known_ = false;
  bool right_ = false;
};

bool is_right(PasswordChecks& checks, const std::string& secret, bool known = true) {
  Outcome outcome;
  REQUIRE(checks.check(
      {.login = login(secret), .hash = kQuick, .known = known, .done = outcome.taker()}));
  return outcome.wait();
}

}  // namespace

TEST_CASE("who was right is remembered for a while, with the hash that it was checked against",
          "[client][passwords]") {
  PasswordChecks checks;
  const MonotonicTime now = monotonic_now();
  const net::Digest id = checks.id_of(login("secret"), kQuick);
  CHECK_FALSE(checks.is_remembered(id, now));
  CHECK_FALSE(is_right(checks, "wrong"));
  CHECK_FALSE(is_right(checks, "secret", false));
  CHECK_FALSE(checks.is_remembered(id, now));
  CHECK(is_right(checks, "secret"));
  CHECK(checks.is_remembered(id, now));
  CHECK_FALSE(checks.is_remembered(id, now + PasswordChecks::kRemembered + std::chrono::hours(1)));
  CHECK_FALSE(checks.is_remembered(checks.id_of(login("wrong"), kQuick), now));
  CHECK_FALSE(checks.is_remembered(checks.id_of(login("secret"), kSlow), now));
  CHECK(is_right(checks, "secret"));
}

TEST_CASE("as many passwords wait as may, and one more is not taken", "[client][passwords]") {
  PasswordChecks checks;
  std::size_t taken = 0;
  const auto check = [&] {
    return checks.check(
        {.login = login("x"), .hash = kSlow, .known = true, .done = [](bool /*right*/) {}});
  };
  while (taken < 200 && check()) ++taken;
  // Those under way are not among those that wait.
  CHECK(taken >= PasswordChecks::kWaitingMax);
  CHECK(taken < 200);
  // What waits is forgotten, and nothing more is taken.
  checks.stop();
  CHECK_FALSE(check());
}

}  // namespace encore::server

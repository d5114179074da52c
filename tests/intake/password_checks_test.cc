#include "proxy/intake/password_checks.h"

#include <condition_variable>
#include <cstddef>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "tests/catch.h"
#include "tests/intake/held_checks.h"

namespace encore::server {
namespace {

// Hashes of "secret"; the second has a cost that takes some 200 ms to find wrong.
const std::string kQuick = "$2y$04$o7a32LtrLk7cLYVa2tWvvuNuGjv5ZEqlqmcmgXtp43nGtcdDlIgTm";
const std::string kSlow = "$2y$12$o7a32LtrLk7cLYVa2tWvvuNuGjv5ZEqlqmcmgXtp43nGtcdDlIgTm";

Login login(const std::string& secret) {
  return {.scheme = Login::Scheme::kBasic, .name = "ann", .secret = secret};
}

// Result of one check.
class CheckResult {
 public:
  PasswordChecks::Done taker() {
    return [this](LoginVerdict verdict) {
      const MutexLock lock(mutex_);
      right_ = verdict == LoginVerdict::kRight;
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
  CheckResult outcome;
  REQUIRE(checks.check({.client = "a",
                        .login = login(secret),
                        .hash = kQuick,
                        .known = known,
                        .done = outcome.taker()}));
  return outcome.wait();
}

}  // namespace

TEST_CASE("who comes with a login that is looked at waits for that", "[client][passwords]") {
  PasswordChecks checks;
  const net::Digest id = checks.id_of(login("wrong"), kSlow);
  CheckResult first;
  CheckResult second;
  CheckResult third;
  CHECK_FALSE(checks.join("a", id, second.taker()));
  REQUIRE(checks.check({.client = "a",
                        .login = login("wrong"),
                        .hash = kSlow,
                        .known = true,
                        .done = first.taker()}));
  CHECK_FALSE(checks.join("b", id, second.taker()));
  CHECK_FALSE(checks.join("a", checks.id_of(login("other"), kSlow), second.taker()));
  CHECK(checks.join("a", id, second.taker()));
  CHECK(checks.join("a", id, third.taker()));
  CHECK_FALSE(first.wait());
  CHECK_FALSE(second.wait());
  CHECK_FALSE(third.wait());
  CHECK_FALSE(checks.join("a", id, second.taker()));
}

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

TEST_CASE("a client has half of those who wait at most, and the next has room beside him",
          "[client][passwords]") {
  PasswordChecks checks;
  HeldChecks held(checks);
  const auto taken_of = [&](const std::string& client) {
    std::size_t taken = 0;
    while (checks.check({.client = client,
                         .login = login("x"),
                         .hash = kQuick,
                         .known = true,
                         .done = [](LoginVerdict /*verdict*/) {}})) {
      ++taken;
    }
    return taken;
  };
  CHECK(taken_of("first") == PasswordChecks::kWaitingMax / 2);
  CHECK(taken_of("second") == PasswordChecks::kWaitingMax / 4);
  CHECK(taken_of("third") == PasswordChecks::kWaitingMax / 8);
  CHECK(taken_of("first") == 0);
  std::size_t others = 0;
  for (int i = 0; i < 100; ++i) others += taken_of(std::to_string(i));
  CHECK(others == PasswordChecks::kWaitingMax / 8);
  // Waiting checks are dropped, and nothing more is taken.
  held.let_go();
  checks.stop();
  CHECK(taken_of("later") == 0);
}

TEST_CASE("clients have their turns, however many of one wait", "[client][passwords]") {
  PasswordChecks checks;
  HeldChecks held(checks);
  std::string order;  // as the one thread that is let go runs them
  CheckResult last;
  const auto check = [&](const std::string& client, PasswordChecks::Done done) {
    const bool taken = checks.check({.client = client,
                                     .login = login("x"),
                                     .hash = kQuick,
                                     .known = true,
                                     .done = std::move(done)});
    REQUIRE(taken);
  };
  const auto note = [&](const std::string& client) {
    check(client, [&order, client](LoginVerdict /*verdict*/) { order += client; });
  };
  for (int i = 0; i < 4; ++i) note("a");
  for (int i = 0; i < 2; ++i) note("b");
  note("c");
  check("a", last.taker());
  held.let_go(1);
  (void)last.wait();
  CHECK(order == "abcabaa");
}

}  // namespace encore::server

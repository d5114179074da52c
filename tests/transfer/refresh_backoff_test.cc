#include "proxy/transfer/refresh_backoff.h"

#include "tests/catch.h"

namespace encore::server {
namespace {

using std::chrono::seconds;

TEST_CASE("a refresh that fails pauses, longer each time, up to a minute",
          "[transfer][rfc5861][3]") {
  RefreshBackoff pauses;
  const filter::Hash128 key{1, 2};
  MonotonicTime now{std::chrono::hours(1)};
  for (const int pause : {1, 2, 4, 8, 16, 32, 60, 60}) {
    CHECK(pauses.may_begin(key, now));
    pauses.note_failure(key, now);
    CHECK_FALSE(pauses.may_begin(key, now + seconds(pause) - Nanoseconds(1)));
    CHECK(pauses.may_begin({2, 1}, now));
    now += seconds(pause);
  }
  pauses.note_success({2, 1});
  pauses.note_failure(key, now);
  CHECK_FALSE(pauses.may_begin(key, now));
  pauses.note_success(key);
  CHECK(pauses.may_begin(key, now));
  pauses.note_failure(key, now);
  CHECK(pauses.may_begin(key, now + seconds(1)));
}

TEST_CASE("a failure long after the last one is a first one", "[transfer][rfc5861][3]") {
  RefreshBackoff pauses;
  const filter::Hash128 key{1, 2};
  MonotonicTime now{std::chrono::hours(1)};
  for (int i = 0; i < 5; ++i) pauses.note_failure(key, now);
  now += std::chrono::minutes(2);
  pauses.note_failure(key, now);
  CHECK(pauses.may_begin(key, now + seconds(1)));
}

}  // namespace
}  // namespace encore::server

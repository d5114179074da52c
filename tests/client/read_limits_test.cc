#include "proxy/client/read_limits.h"

#include "tests/catch.h"

namespace encore::server {
namespace {

using std::chrono::seconds;

// One that took so many bytes in each of the last `looks` seconds, and was waited for all the time.
ReadRateMeter meter_of(std::uint64_t bytes_per_second, int looks) {
  ReadRateMeter meter;
  MonotonicTime now{seconds(100)};
  std::uint64_t taken = 0;
  meter.record_blocked(now, taken);
  for (int look = 0; look < looks; ++look) {
    meter.record_blocked(now += seconds(1), taken += bytes_per_second);
  }
  return meter;
}

TEST_CASE("a client is measured for as long as it may take nothing, or for a minute", "[client]") {
  config::Config config;
  config.limits.client_write_rate_min = 1000;
  const auto limit = GENERATE(seconds(0), seconds(2), seconds(60), seconds(300));
  config.timeouts.client_write = limit;
  const int window = static_cast<int>(limit.count() == 0 ? 60 : limit.count());
  CHECK_FALSE(meter_of(999, window - 1).is_below(minimum_read_rate(config)));
  CHECK(meter_of(999, window).is_below(minimum_read_rate(config)));
  CHECK_FALSE(meter_of(1000, window).is_below(minimum_read_rate(config)));
  config.limits.client_write_rate_min = 0;
  CHECK_FALSE(meter_of(0, window).is_below(minimum_read_rate(config)));
}

TEST_CASE("a client is slow for what it needs more than two seconds for", "[client]") {
  CHECK_FALSE(is_slow_for(meter_of(1000, 1), 0));
  CHECK_FALSE(is_slow_for(meter_of(1000, 1), 2001));
  CHECK(is_slow_for(meter_of(1000, 1), 2002));
  CHECK_FALSE(is_slow_for(meter_of(1000, 0), 1'000'000));  // its rate is not known
  CHECK(is_slow_for(meter_of(0, 1), 2));
}

}  // namespace
}  // namespace encore::server

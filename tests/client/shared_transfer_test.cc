// Clients that share one transfer which is not stored: those that take nothing do not hold up the
// others. Nobody sweeps here, so that nothing but what happens of itself can help them.
#include <memory>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/client/client_world.h"
#include "tests/letters.h"

namespace encore::server {
namespace {

// Too large to be stored: by far more than the origin may be ahead of a reader, with what sockets
// hold.
constexpr std::size_t kBytes = 32U << 20U;

struct SlowReadersFixture {
  explicit SlowReadersFixture(std::size_t slow_ones)
      : world(config::Mode::kReverse,
              [](config::Config& config) { config.cache.max_object_bytes = 1U << 20U; }) {
    for (std::size_t i = 0; i < slow_ones; ++i) {
      slow.push_back(std::make_unique<Client>(world, Client::Narrow{}));
      slow.back()->reads = false;
      slow.back()->say(kRequest);
    }
    quick = std::make_unique<Client>(world);
    quick->say(kRequest);
    world.run_until_asked();
    world.run_turns(5);  // the others have joined by then
    world.origin.say("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: " +
                     std::to_string(kBytes) + "\r\n\r\n");
  }
  // The origin says all that is taken of it; how many bytes the quick one has heard.
  std::size_t serve() {
    const std::string piece = letters(64 * 1024);
    std::size_t said = 0;
    world.run_until([&] {
      said += world.origin.offer(std::string_view(piece).substr(0, kBytes - said));
      heard += quick->heard.size();
      quick->heard.clear();
      return heard > kBytes;
    });
    return heard;
  }

  static constexpr std::string_view kRequest = "GET /large HTTP/1.1\r\nHost: h\r\n\r\n";
  ClientWorld world;
  std::vector<std::unique_ptr<Client>> slow;
  std::unique_ptr<Client> quick;
  std::size_t heard = 0;
};

TEST_CASE("a reader that takes nothing leaves the transfer, and the others go on",
          "[client][transfer]") {
  const auto slow_ones = GENERATE(std::size_t{1}, std::size_t{6});
  SlowReadersFixture f(slow_ones);
  CHECK(f.serve() > kBytes);
  CHECK(f.world.origin.accepted == 1);
  CHECK(f.world.world.stats.slow_readers_cut.get() == slow_ones);
  CHECK(f.world.ended_as(Outcome::kSlowReader) == slow_ones);
}

TEST_CASE("a reader that takes a little now and then stays", "[client][transfer]") {
  SlowReadersFixture f(1);
  const std::string piece = letters(64 * 1024);
  std::size_t said = 0;
  // As long as several looks take.
  const MonotonicTime end = monotonic_now() + 6 * StallDetector::kLookInterval;
  f.slow[0]->reads = true;
  while (monotonic_now() < end) {
    said += f.world.origin.offer(std::string_view(piece).substr(0, kBytes - said));
    f.quick->heard.clear();
    f.slow[0]->heard.clear();
    f.world.run_turns(1);
  }
  CHECK(f.world.world.stats.slow_readers_cut.get() == 0);
  CHECK_FALSE(f.slow[0]->is_over());
}

}  // namespace
}  // namespace encore::server

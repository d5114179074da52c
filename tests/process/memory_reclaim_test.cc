#include "proxy/process/memory_reclaim.h"

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "proxy/client/client_connection.h"
#include "proxy/origin/fetch.h"
#include "tests/catch.h"
#include "tests/origin/ballast.h"
#include "tests/origin/world.h"
#include "tests/process/filled_cache.h"

namespace encore::server {
namespace {

// A connection of which its reader alone is checked.
class Reader final : public ClientConnection {
 public:
  explicit Reader(std::optional<SlowReader> slow) : slow_(slow) {}

  net::Stream& stream() override {
    ENCORE_CHECK(false, "nobody asks for the stream");
    std::abort();
  }
  void begin() override {}
  void check_timeouts(MonotonicTime) override {}
  void drain() override {}
  void end_if_quiet() override {}
  bool revoke() override { return false; }
  bool is_revoked() const override { return false; }
  void cut(const ClientGone&) override {}
  bool may_be_given_up() const override { return false; }
  void give_up() override {}
  void refuse_unfinished_head() override {}
  void check_read_rate(MonotonicTime) override { ++looks; }
  std::optional<SlowReader> slow_reader() const override { return slow_; }
  void cut_reader() override {
    is_cut = true;
    slow_.reset();
  }

  int looks = 0;
  bool is_cut = false;

 private:
  std::optional<SlowReader> slow_;
};

// A worker with these readers, and a cache of 100 objects.
class Place final : public ReclaimableMemory {
 public:
  explicit Place(const std::vector<std::optional<SlowReader>>& readers)
      : cache_(100), loop_(net::Loop::create().value()) {
    for (const auto& slow : readers) {
      readers_.push_back(std::make_unique<Reader>(slow));
      if (readers_.size() > 1) readers_[readers_.size() - 2]->next = readers_.back().get();
    }
    relief_ = std::make_unique<WorkerMemoryReclaim>(
        WorkerMemoryReclaim::Parts{.loop = *loop_,
                                   .kernel = *cache_.shared.kernel,
                                   .slow_readers = slow_readers_,
                                   .stats = stats_,
                                   .worker = *this});
  }

  ClientConnection* connections() const override {
    return readers_.empty() ? nullptr : readers_.front().get();
  }
  std::span<const std::unique_ptr<Fetch>> fetches() const override { return {}; }

  // A turn that does not sleep.
  void turn() {
    loop_->post([] {});
    (void)loop_->turn();
  }
  // Which of the readers are cut, by their places: "02".
  std::string cut() const {
    std::string places;
    for (std::size_t i = 0; i < readers_.size(); ++i) {
      if (readers_[i]->is_cut) places += std::to_string(i);
    }
    return places;
  }
  WorkerMemoryReclaim& relief() { return *relief_; }
  SlowReaders& slow_readers() { return slow_readers_; }
  const Reader& reader(std::size_t i) const { return *readers_[i]; }
  MonotonicTime now() { return loop_->now(); }
  std::uint64_t objects() const { return cache_.shared.kernel->statistics().objects; }
  std::uint64_t evictions() const { return stats_.memory_evictions.get(); }

 private:
  FilledCache cache_;
  WorkerStats stats_;
  SlowReaders slow_readers_;
  std::unique_ptr<net::Loop> loop_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::unique_ptr<WorkerMemoryReclaim> relief_;
};

constexpr std::uint64_t kMuch = 4ULL << 20U;  // more than is made free at a time

SlowReader slow(std::uint64_t rate, std::uint64_t held, bool over_share) {
  return {.bytes_per_second = rate, .held_bytes = held, .over_share = over_share};
}

TEST_CASE("readers beyond their share give way before what is stored", "[process][relief]") {
  Place place({slow(10, kMuch, false), slow(30, kMuch, true), slow(20, kMuch, true), {}});
  place.relief().look(place.now());
  CHECK(place.reader(3).looks == 1);
  CHECK_FALSE(place.relief().make_room());  // there will be room in a later turn
  CHECK(place.cut().empty());               // and nobody is cut within the call
  place.turn();
  CHECK(place.cut() == "2");  // the slowest of those beyond their share; what it held is enough
  CHECK(place.objects() == 100);
}

TEST_CASE("where nobody is beyond its share, stored responses are evicted", "[process][relief]") {
  Place place({slow(10, kMuch, false), {}});
  place.relief().look(place.now());
  CHECK(place.relief().make_room());
  place.turn();
  CHECK(place.cut().empty());
  CHECK(place.objects() < 100);
  CHECK(place.evictions() == 100 - place.objects());
}

TEST_CASE("the slowest are cut until enough is free, of two that take nothing the larger",
          "[process][relief]") {
  Place place({slow(0, 600, true), slow(5, 500, true), slow(0, 700, true), slow(1, 100, true)});
  place.relief().look(place.now());
  REQUIRE(place.slow_readers().cut(SlowReaders::Scope::kAll, 1400, place.now()));
  place.turn();
  CHECK(place.cut() == "023");
}

TEST_CASE("after a cut the next slowest is known without another look", "[process][relief]") {
  Place place({slow(1, kMuch, true), slow(2, kMuch, true)});
  place.relief().look(place.now());
  REQUIRE(place.slow_readers().cut(SlowReaders::Scope::kAll, 1, place.now()));
  place.turn();
  place.turn();
  REQUIRE(place.slow_readers().cut(SlowReaders::Scope::kAll, 1, place.now()));
  place.turn();
  place.turn();
  CHECK(place.cut() == "01");
  CHECK_FALSE(place.slow_readers().cut(SlowReaders::Scope::kAll, 1, place.now()));
}

TEST_CASE("readers are looked at about once a second", "[process][relief]") {
  Place place({slow(1, 1, false)});
  const MonotonicTime start = place.now();
  place.relief().look(start);
  place.relief().look(start + std::chrono::milliseconds(899));
  CHECK(place.reader(0).looks == 1);
  place.relief().look(start + std::chrono::milliseconds(900));
  CHECK(place.reader(0).looks == 2);
}

// Fetches of one worker, of which nobody is slow.
class Fetches final : public ReclaimableMemory {
 public:
  explicit Fetches(World& world) : world_(world) {
    relief_ = std::make_unique<WorkerMemoryReclaim>(
        WorkerMemoryReclaim::Parts{.loop = *world.loop,
                                   .kernel = *world.kernel,
                                   .slow_readers = slow_readers_,
                                   .stats = world.stats,
                                   .worker = *this});
  }
  ClientConnection* connections() const override { return nullptr; }
  std::span<const std::unique_ptr<Fetch>> fetches() const override { return world_.fetches; }
  WorkerMemoryReclaim& relief() { return *relief_; }

 private:
  World& world_;
  SlowReaders slow_readers_;
  std::unique_ptr<WorkerMemoryReclaim> relief_;
};

// A response of which all but its body is there.
struct Begun {
  Begun(World& world, Origin& origin, std::string_view path)
      : reader(world, world.request("GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n\r\n"),
               [] {
                 FetchPlan plan;
                 plan.whole = true;
                 return plan;
               }()) {
    world.run_until_asked(origin);
    origin.say("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: " +
               std::to_string(kBytes) + "\r\n\r\n");
    world.run_until(origin, [&] { return !reader.head.empty(); });
  }
  static constexpr std::size_t kBytes = 200'000;
  FetchReader reader;
};

TEST_CASE("of those that wait for memory the one that has for longest gives way",
          "[process][relief]") {
  Origin first;
  Origin second;
  World world({first.url(), second.url()});
  world.wastes_bytes = true;  // those of the response that gives way
  Begun one(world, first, "/one");
  Begun two(world, second, "/two");
  Fetches place(world);
  REQUIRE(world.fetches.size() == 2);
  const Fetch& fetch_one = *world.fetches[0];
  const Fetch& fetch_two = *world.fetches[1];
  const std::string body(Begun::kBytes, 'x');
  Ballast ballast(*world.store);
  // The one that began later is the first to wait.
  REQUIRE(second.offer(body) == body.size());
  world.run_until(second, [&] { return fetch_two.waits_for_memory(); });
  REQUIRE(first.offer(body) == body.size());
  world.run_until(first, [&] { return fetch_one.waits_for_memory(); });
  REQUIRE(fetch_two.waits_for_memory_since() < fetch_one.waits_for_memory_since());

  place.relief().wait_for_room();
  // As the worker's sweep does.
  world.run_until(second, [&] {
    place.relief().look(world.loop->now());
    return two.reader.is_done();
  });
  CHECK_FALSE(two.reader.whole);
  CHECK(world.stats.memory_failures.get() == 1);
  REQUIRE(world.fetches.size() == 1);
  CHECK_FALSE(one.reader.is_done());
  ballast.drop(40);
  world.run_until(first, [&] { return one.reader.is_done(); });
  CHECK(one.reader.whole);
  CHECK(one.reader.body == body);
}

}  // namespace
}  // namespace encore::server

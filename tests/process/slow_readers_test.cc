#include "proxy/process/slow_readers.h"

#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

using Scope = SlowReaders::Scope;

class Cutter final : public SlowReaders::Cutter {
 public:
  explicit Cutter(SlowReaders& readers) : readers_(readers) { readers_.add(*this); }
  ~Cutter() { readers_.remove(*this); }
  void cut_later(Scope scope, std::uint64_t bytes) override {
    asked.push_back(scope);
    last_bytes = bytes;
  }
  std::vector<Scope> asked;
  std::uint64_t last_bytes = 0;

 private:
  SlowReaders& readers_;
};

constexpr MonotonicTime kStart = MonotonicTime(std::chrono::hours(1));

TEST_CASE("the worker of the slowest reader is asked to cut it", "[process][slow_readers]") {
  SlowReaders readers;
  Cutter first(readers);
  Cutter second(readers);
  CHECK_FALSE(readers.cut(Scope::kAll, 1000, kStart));  // nobody is slow
  readers.publish(first, {.over_share = 50, .all = 10}, kStart);
  readers.publish(second, {.over_share = 40, .all = 20}, kStart);
  CHECK(readers.cut(Scope::kAll, 1000, kStart));
  CHECK(first.asked == std::vector{Scope::kAll});
  CHECK(first.last_bytes == 1000);
  readers.publish_done(first, {.over_share = 50, .all = 30});
  CHECK(readers.cut(Scope::kOverShare, 2000, kStart));
  CHECK(second.asked == std::vector{Scope::kOverShare});
  CHECK(second.last_bytes == 2000);
}

TEST_CASE("a worker without a reader of that kind is not asked", "[process][slow_readers]") {
  SlowReaders readers;
  Cutter only(readers);
  readers.publish(only, {.all = 10}, kStart);
  CHECK_FALSE(readers.cut(Scope::kOverShare, 1000, kStart));
  CHECK(only.asked.empty());
}

TEST_CASE("one cut is under way at a time, and not for longer than a second",
          "[process][slow_readers]") {
  SlowReaders readers;
  Cutter only(readers);
  readers.publish(only, {.over_share = 1, .all = 1}, kStart);
  CHECK(readers.cut(Scope::kAll, 1000, kStart));
  CHECK(readers.cut(Scope::kAll, 1000, kStart + std::chrono::milliseconds(999)));
  CHECK(only.asked.size() == 1);
  // One that never answers, for its worker has ended.
  CHECK(readers.cut(Scope::kAll, 1000, kStart + std::chrono::seconds(1)));
  CHECK(only.asked.size() == 2);
  readers.publish_done(only, {.over_share = 1, .all = 1});
  CHECK(readers.cut(Scope::kAll, 1000, kStart + std::chrono::seconds(1)));
  CHECK(only.asked.size() == 3);
}

TEST_CASE("all are known when each worker has looked twice", "[process][slow_readers]") {
  const auto at = [](int seconds) { return kStart + std::chrono::seconds(seconds); };
  SlowReaders readers;
  Cutter first(readers);
  Cutter second(readers);
  CHECK_FALSE(readers.have_looked_twice_since(at(1)));
  readers.publish(first, {}, at(1));
  readers.publish(first, {}, at(2));
  readers.publish(second, {}, at(1));
  CHECK_FALSE(readers.have_looked_twice_since(at(1)));
  readers.publish(second, {}, at(3));
  CHECK(readers.have_looked_twice_since(at(1)));
  CHECK_FALSE(readers.have_looked_twice_since(at(2)));
}

TEST_CASE("a worker that has gone is not asked, and what it says is not heard",
          "[process][slow_readers]") {
  SlowReaders readers;
  Cutter stays(readers);
  readers.publish(stays, {.all = 100}, kStart);
  {
    Cutter goes(readers);
    readers.publish(goes, {.all = 1}, kStart);
  }
  CHECK(readers.cut(Scope::kAll, 1000, kStart));
  CHECK(stays.asked.size() == 1);
}

}  // namespace
}  // namespace encore::server

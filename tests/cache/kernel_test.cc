#include "cache/kernel.h"

#include <functional>
#include <string_view>
#include <vector>

#include "tests/cache/support.h"

namespace encore::cache::test {

TEST_CASE("An entry is fresh, then stale, then gone", "[cache]") {
  CountingOwner owner;
  const auto kernel = make_kernel(plain_options(1000), {.owner = &owner});
  REQUIRE(store(*kernel, key(1),
                {.charge_bytes = 10, .fresh_until = at(60), .keep_until = at(100), .payload = 5},
                at(0)) == CommitOutcome::kStored);
  CHECK(kernel->lookup(key(1), at(59)).state == LookupState::kFresh);
  const LookupResult stale = kernel->lookup(key(1), at(60));
  CHECK(stale.state == LookupState::kStale);
  CHECK(stale.payload == 5);
  CHECK(stale.fresh_until == at(60));
  CHECK(kernel->lookup(key(1), at(99)).state == LookupState::kStale);
  const LookupResult gone = kernel->lookup(key(1), at(100));
  CHECK(gone.state == LookupState::kMiss);
  CHECK_FALSE(gone.any_resident);
  CHECK(owner.released(5) == 1);
  const KernelStatistics statistics = kernel->statistics();
  CHECK(statistics.counters.expirations == 1);
  CHECK(statistics.counters.fresh_hits == 1);
  CHECK(statistics.counters.stale_hits == 2);
  CHECK(statistics.counters.misses == 1);
  CHECK(statistics.used_bytes == 0);
  CHECK(statistics.objects == 0);
}

TEST_CASE("Times at the ends of the scale are kept", "[cache]") {
  const auto kernel = make_kernel(plain_options(1000));
  // Stale from the start, and kept for ever.
  store(*kernel, key(1), {.charge_bytes = 1, .fresh_until = MonotonicTime::min(), .payload = 1},
        at(0));
  CHECK(kernel->lookup(key(1), at(1'000'000)).state == LookupState::kStale);
  // Stale from the start, and useless from the start.
  store(*kernel, key(2),
        {.charge_bytes = 1,
         .fresh_until = MonotonicTime::min(),
         .keep_until = MonotonicTime::min(),
         .payload = 2},
        at(0));
  CHECK(kernel->lookup(key(2), at(0)).state == LookupState::kMiss);
  // Fresh until the last moment.
  store(*kernel, key(3), {.charge_bytes = 1, .keep_until = at(5), .payload = 3}, at(0));
  CHECK(kernel->lookup(key(3), MonotonicTime::max() - Nanoseconds(1)).state == LookupState::kFresh);
}

TEST_CASE("The variants of a key are offered latest first, and the oldest goes beyond the bound",
          "[cache]") {
  CountingOwner owner;
  KernelOptions options = plain_options(1000);
  options.variants_max = 3;
  const auto kernel = make_kernel(options, {.owner = &owner});
  for (std::uint64_t variant = 1; variant <= 4; ++variant) {
    store(*kernel, key(1), {.variant = variant, .charge_bytes = 10, .payload = 100 + variant},
          at(0));
  }
  CHECK(owner.total() == 1);
  CHECK(owner.released(101) == 1);
  CHECK(kernel->lookup(key(1), at(0)).variant == 4);
  Select second(103);
  const LookupResult result = kernel->lookup(key(1), at(0), second);
  CHECK(result.variant == 3);
  CHECK(second.asked == 2);
  Select none(999);
  const LookupResult miss = kernel->lookup(key(1), at(0), none);
  CHECK(miss.state == LookupState::kMiss);
  CHECK(miss.any_resident);
  CHECK(none.asked == 3);
  SECTION("the same variant is replaced and comes first") {
    CHECK(store(*kernel, key(1), {.variant = 2, .charge_bytes = 20, .payload = 7}, at(0)) ==
          CommitOutcome::kReplaced);
    CHECK(owner.released(102) == 1);
    CHECK(kernel->lookup(key(1), at(0)).payload == 7);
    CHECK(kernel->statistics().used_bytes == 40);
  }
  SECTION("one can be removed from the middle") {
    CHECK(kernel->remove(key(1), 3, at(0)));
    CHECK_FALSE(kernel->remove(key(1), 3, at(0)));
    Select third(102);
    CHECK(kernel->lookup(key(1), at(0), third).state == LookupState::kFresh);
    CHECK(third.asked == 2);
  }
  SECTION("all are invalidated together") {
    CHECK(kernel->invalidate(key(1), at(0)) == 3);
    CHECK(kernel->statistics().used_bytes == 0);
    CHECK(owner.total() == 4);
    CHECK(owner.each_once());
  }
  SECTION("a soft purge leaves them stale") {
    CHECK(kernel->mark_stale(key(1), at(7)) == 3);
    CHECK(kernel->lookup(key(1), at(7)).state == LookupState::kStale);
  }
}

class CountingObserver final : public Observer {
 public:
  void record(const Event& /*event*/) override { ++count; }
  std::uint64_t count = 0;
};

// Selects one payload, but does not know what to say of it at first.
class Undecided final : public Selector {
 public:
  bool matches(Payload payload) override {
    undecided_ = !prepared;
    return prepared && payload == 101;
  }
  bool is_undecided() const override { return undecided_; }
  bool prepared = false;

 private:
  bool undecided_ = false;
};

TEST_CASE("A lookup whose selector is undecided is as if it had not been", "[cache]") {
  CountingOwner owner;
  CountingObserver observer;
  const auto kernel = make_kernel(plain_options(1000), {.owner = &owner, .observer = &observer});
  store(*kernel, key(1), {.variant = 1, .charge_bytes = 10, .payload = 101}, at(0));
  store(
      *kernel, key(1),
      {.variant = 2, .charge_bytes = 10, .fresh_until = at(5), .keep_until = at(5), .payload = 102},
      at(0));
  const std::uint64_t events = observer.count;
  Undecided selector;
  const LookupResult first = kernel->lookup(key(1), at(6), selector);
  CHECK(first.is_undecided);
  CHECK(first.state == LookupState::kMiss);
  CHECK(owner.total() == 0);
  CHECK(observer.count == events);
  CHECK(kernel->statistics().used_bytes == 20);
  selector.prepared = true;
  const LookupResult second = kernel->lookup(key(1), at(6), selector);
  CHECK_FALSE(second.is_undecided);
  CHECK(second.variant == 1);
  CHECK(owner.released(102) == 1);
  CHECK(observer.count == events + 1);
  CHECK(kernel->statistics().used_bytes == 10);
}

TEST_CASE("The overhead of an entry is charged with it", "[cache]") {
  KernelOptions options = plain_options(1000);
  options.entry_overhead_bytes = kEntryOverheadBytes;
  const auto kernel = make_kernel(options);
  REQUIRE(kernel->reserve(key(1), 100 + kernel->charge_of_entry(), at(0)) ==
          ReserveOutcome::kReserved);
  CHECK(kernel->statistics().reserved_bytes == 176);
  CHECK(kernel->commit(key(1), {.charge_bytes = 100}, 176, at(0)) == CommitOutcome::kStored);
  CHECK(kernel->statistics().used_bytes == 176);
  CHECK(kernel->statistics().reserved_bytes == 0);
}

TEST_CASE("A reservation is enlarged or given back by the commit", "[cache]") {
  const auto kernel = make_kernel(plain_options(100));
  REQUIRE(kernel->reserve(key(1), 60, at(0)) == ReserveOutcome::kReserved);
  CHECK(kernel->commit(key(1), {.charge_bytes = 20}, 60, at(0)) == CommitOutcome::kStored);
  CHECK(kernel->statistics().used_bytes == 20);
  REQUIRE(kernel->reserve(key(2), 10, at(0)) == ReserveOutcome::kReserved);
  CHECK(kernel->commit(key(2), {.charge_bytes = 90}, 10, at(0)) == CommitOutcome::kStored);
  CHECK(kernel->statistics().used_bytes == 90);  // 1 was evicted for it
  CHECK(kernel->lookup(key(1), at(0)).state == LookupState::kMiss);
}

TEST_CASE("What cannot fit is refused and leaves nothing behind", "[cache]") {
  const auto kernel = make_kernel(plain_options(100));
  store(*kernel, key(1), {.charge_bytes = 30}, at(0));
  CHECK(kernel->reserve(key(2), 101, at(0)) == ReserveOutcome::kTooLarge);
  CHECK(kernel->lookup(key(1), at(0)).state == LookupState::kFresh);
  REQUIRE(kernel->reserve(key(2), 70, at(0)) == ReserveOutcome::kReserved);
  REQUIRE(kernel->reserve(key(2), 30, at(0)) == ReserveOutcome::kReserved);  // evicts 1
  CHECK(kernel->reserve(key(3), 1, at(0)) == ReserveOutcome::kFull);
  CHECK(kernel->commit(key(2), {.charge_bytes = 101}, 100, at(0)) == CommitOutcome::kFull);
  CHECK(kernel->statistics().used_bytes == 0);
  CHECK(kernel->statistics().reserved_bytes == 0);
  CHECK(kernel->commit(key(4), {.charge_bytes = 101}, 0, at(0)) == CommitOutcome::kTooLarge);
  REQUIRE(kernel->reserve(key(2), 70, at(0)) == ReserveOutcome::kReserved);
  kernel->abort(key(2), 70, at(0));
  CHECK(kernel->statistics().used_bytes == 0);
  CHECK(kernel->statistics().counters.reserve_failures == 4);
}

TEST_CASE("The largest object is an eighth of the capacity, or what the options say", "[cache]") {
  KernelOptions options = plain_options(800);
  options.max_object_share = 8;
  CHECK(effective_max_object(reload_options(options)) == 100);
  CHECK(make_kernel(options)->reserve(key(1), 100, at(0)) == ReserveOutcome::kReserved);
  CHECK(make_kernel(options)->reserve(key(1), 101, at(0)) == ReserveOutcome::kTooLarge);
  options.max_object_bytes = 50;
  CHECK(make_kernel(options)->reserve(key(1), 51, at(0)) == ReserveOutcome::kTooLarge);
  options.max_object_bytes = 5000;
  CHECK(make_kernel(options)->reserve(key(1), 101, at(0)) == ReserveOutcome::kTooLarge);
}

TEST_CASE("An object larger than its shard's share evicts from the shards that follow", "[cache]") {
  KernelOptions options = plain_options(1600);
  options.shards = 16;
  const auto kernel = make_kernel(options);
  for (std::uint64_t id = 0; id < 160; ++id) {
    store(*kernel, key(id), {.charge_bytes = 10}, at(0));
  }
  CHECK(kernel->statistics().used_bytes == 1600);
  CHECK(store(*kernel, key(1000), {.charge_bytes = 1500}, at(0)) == CommitOutcome::kStored);
  CHECK(kernel->statistics().used_bytes == 1600);
  CHECK(kernel->statistics().objects == 11);
}

TEST_CASE("What is asked for all the time stays where few large objects fill the memory",
          "[cache]") {
  // A turn of the proxy's loop may store some of them before anything is asked for again.
  const std::uint64_t burst = GENERATE(1U, 3U);
  KernelOptions options = plain_options(16'000);
  options.shards = 16;
  options.eviction = GENERATE(EvictionPolicy::kSieve, EvictionPolicy::kLru);
  INFO(to_string(options.eviction) << ", " << burst << " at once");
  const auto kernel = make_kernel(options);
  REQUIRE(store(*kernel, key(0), {.charge_bytes = 3}, at(0)) == CommitOutcome::kStored);
  std::uint64_t lost = 0;
  for (std::uint64_t i = 1; i <= 3000; ++i) {
    REQUIRE(store(*kernel, key(i), {.charge_bytes = 1000}, at(0)) == CommitOutcome::kStored);
    if (i % burst == 0 && kernel->lookup(key(0), at(0)).state != LookupState::kFresh) {
      ++lost;
      REQUIRE(store(*kernel, key(0), {.charge_bytes = 3}, at(0)) == CommitOutcome::kStored);
    }
  }
  CHECK(kernel->statistics().counters.evictions > 2900);
  CHECK(lost <= (burst == 1 ? 0U : 20U));
}

TEST_CASE("Freshening gives an entry new times, charge and payload where it is", "[cache]") {
  CountingOwner owner;
  KernelOptions options = plain_options(100);
  options.eviction = EvictionPolicy::kFifo;
  const auto kernel = make_kernel(options, {.owner = &owner});
  store(*kernel, key(1), {.charge_bytes = 30, .fresh_until = at(1), .payload = 1}, at(0));
  store(*kernel, key(2), {.charge_bytes = 30, .payload = 2}, at(0));
  CHECK(kernel->freshen(key(1), {.charge_bytes = 40, .fresh_until = at(50), .payload = 11},
                        at(2)) == FreshenOutcome::kFreshened);
  CHECK(owner.released(1) == 1);
  CHECK(kernel->lookup(key(1), at(49)).state == LookupState::kFresh);
  CHECK(kernel->statistics().used_bytes == 70);
  SECTION("with the same payload, nothing is released") {
    CHECK(kernel->freshen(key(1), {.charge_bytes = 40, .fresh_until = at(60), .payload = 11},
                          at(2)) == FreshenOutcome::kFreshened);
    CHECK(owner.released(11) == 0);
  }
  SECTION("growing evicts others, and may evict itself") {
    store(*kernel, key(3), {.charge_bytes = 30, .payload = 3}, at(0));
    // FIFO: the oldest is the entry itself.
    CHECK(kernel->freshen(key(1), {.charge_bytes = 50, .payload = 12}, at(2)) ==
          FreshenOutcome::kAbsent);
    CHECK(owner.released(12) == 0);
    CHECK(owner.released(11) == 1);
    CHECK(kernel->statistics().used_bytes == 60);
    CHECK(kernel->statistics().counters.evictions == 1);
    CHECK(kernel->freshen(key(3), {.charge_bytes = 80, .payload = 13}, at(2)) ==
          FreshenOutcome::kFreshened);
    CHECK(kernel->lookup(key(2), at(2)).state == LookupState::kMiss);
    CHECK(kernel->statistics().used_bytes == 80);
  }
  SECTION("what is absent or too large changes nothing") {
    CHECK(kernel->freshen(key(9), {.charge_bytes = 1}, at(2)) == FreshenOutcome::kAbsent);
    CHECK(kernel->freshen(key(1), {.charge_bytes = 101}, at(2)) == FreshenOutcome::kTooLarge);
    CHECK(kernel->statistics().used_bytes == 70);
    CHECK(kernel->statistics().reserved_bytes == 0);
  }
}

TEST_CASE("Nothing more is evicted for an entry whose own turn came as it was to grow", "[cache]") {
  for (const std::string_view name : kEvictionNames) {
    const EvictionPolicy policy = *parse_eviction(name);
    if (policy == EvictionPolicy::kBelady) continue;  // it needs hints
    CAPTURE(name);
    KernelOptions options = plain_options(100);
    options.eviction = policy;
    // Which of ten the policy evicts first, in a kernel of its own.
    const auto fill = [&] {
      auto kernel = make_kernel(options);
      for (std::uint64_t i = 1; i <= 10; ++i) {
        REQUIRE(store(*kernel, key(i), {.charge_bytes = 10}, at(0)) == CommitOutcome::kStored);
      }
      return kernel;
    };
    const auto asked = fill();
    REQUIRE(asked->reserve(key(99), 1, at(1)) == ReserveOutcome::kReserved);
    std::uint64_t first = 1;
    while (asked->lookup(key(first), at(1)).state != LookupState::kMiss) ++first;
    SECTION("freshen " + std::string(name)) {
      const auto kernel = fill();
      CHECK(kernel->freshen(key(first), {.charge_bytes = 45}, at(1)) == FreshenOutcome::kAbsent);
      CHECK(kernel->statistics().counters.evictions == 1);
      CHECK(kernel->statistics().used_bytes == 90);
      CHECK(kernel->statistics().reserved_bytes == 0);
    }
    SECTION("reserve_growth " + std::string(name)) {
      const auto kernel = fill();
      CHECK_FALSE(kernel->reserve_growth(key(first), 0, 35, at(1)));
      CHECK(kernel->statistics().counters.evictions == 1);
      CHECK(kernel->statistics().used_bytes == 90);
      CHECK(kernel->reserve_growth(key(first % 10 + 1), 0, 5, at(1)));
      CHECK(kernel->statistics().reserved_bytes == 5);
    }
  }
}

TEST_CASE("What was overtaken is not stored, and not freshened", "[cache]") {
  struct Overtaken final : public InvalidationCheck {
    bool is_overtaken() const override { return is; }
    bool is = true;
  } overtaken;
  CountingOwner owner;
  const auto kernel = make_kernel(plain_options(100), {.owner = &owner});
  const Stored first{.charge_bytes = 30, .payload = 1, .invalidation_check = &overtaken};
  REQUIRE(kernel->reserve(key(1), 50, at(0)) == ReserveOutcome::kReserved);
  CHECK(kernel->commit(key(1), first, 50, at(0)) == CommitOutcome::kSuperseded);
  CHECK(kernel->lookup(key(1), at(0)).state == LookupState::kMiss);
  overtaken.is = false;
  CHECK(store(*kernel, key(1), first, at(0)) == CommitOutcome::kStored);
  overtaken.is = true;
  const Stored second{.charge_bytes = 40, .payload = 2, .invalidation_check = &overtaken};
  CHECK(kernel->freshen(key(1), second, at(0)) == FreshenOutcome::kAbsent);
  CHECK(store(*kernel, key(1), second, at(0)) == CommitOutcome::kSuperseded);
  // The entry stays until its invalidation removes it.
  CHECK(kernel->lookup(key(1), at(0)).payload == 1);
  overtaken.is = false;
  CHECK(kernel->freshen(key(1), second, at(0)) == FreshenOutcome::kFreshened);
  CHECK(kernel->lookup(key(1), at(0)).payload == 2);
  CHECK(owner.total() == 1);
  CHECK(kernel->statistics().used_bytes == 40);
  CHECK(kernel->statistics().reserved_bytes == 0);
}

TEST_CASE("A moved object's payload is replaced only where the old one is still held", "[cache]") {
  const auto kernel = make_kernel(plain_options(100));
  store(*kernel, key(1), {.charge_bytes = 1, .payload = 5}, at(0));
  CHECK_FALSE(kernel->relocate(key(1).hash, 4, 6));
  CHECK_FALSE(kernel->relocate(key(2).hash, 5, 6));
  CHECK(kernel->relocate(key(1).hash, 5, 6));
  CHECK(kernel->lookup(key(1), at(0)).payload == 6);
}

TEST_CASE("A walk in bounded steps visits every entry once and can purge", "[cache]") {
  struct Purge final : Visitor {
    std::uint64_t visited = 0;
    Verdict visit(const EntryView& entry) override {
      ++visited;
      return entry.payload % 3 == 0   ? Verdict::kRemove
             : entry.payload % 3 == 1 ? Verdict::kMarkStale
                                      : Verdict::kKeep;
    }
  } purge;
  CountingOwner owner;
  KernelOptions options = plain_options(100'000);
  options.shards = 4;
  const auto kernel = make_kernel(options, {.owner = &owner});
  for (std::uint64_t id = 1; id <= 3000; ++id) {
    store(*kernel, key(id), {.charge_bytes = 10, .payload = id}, at(0));
  }
  Kernel::Cursor cursor;
  while (kernel->for_each(cursor, 100, purge, at(1))) {
  }
  CHECK(purge.visited == 3000);
  CHECK(owner.total() == 1000);
  CHECK(owner.each_once());
  CHECK(kernel->statistics().used_bytes == 20'000);
  CHECK(kernel->lookup(key(3), at(1)).state == LookupState::kMiss);
  CHECK(kernel->lookup(key(4), at(1)).state == LookupState::kStale);
  CHECK(kernel->lookup(key(5), at(1)).state == LookupState::kFresh);
}

TEST_CASE("A smaller capacity takes effect in bounded steps and wipes nothing else", "[cache]") {
  KernelOptions options = plain_options(10'000);
  options.shards = 4;
  const auto kernel = make_kernel(options);
  for (std::uint64_t id = 0; id < 1000; ++id) {
    store(*kernel, key(id), {.charge_bytes = 10}, at(0));
  }
  ReloadOptions reload = reload_options(options);
  reload.capacity_bytes = 4000;
  REQUIRE(kernel->reconfigure(reload, at(1)));
  CHECK(kernel->statistics().used_bytes == 10'000);
  CHECK(kernel->statistics().capacity_bytes == 4000);
  // Until it has shrunk, nothing is added.
  CHECK(store(*kernel, key(5000), {.charge_bytes = 10}, at(1)) == CommitOutcome::kStored);
  CHECK(kernel->statistics().used_bytes == 10'000);
  std::uint64_t before = 10'000;
  while (kernel->reclaim(7, at(1)) == Kernel::Reclaimed::kSome) {
    const std::uint64_t used = kernel->statistics().used_bytes;
    REQUIRE(before - used <= 70);
    before = used;
  }
  CHECK(kernel->statistics().used_bytes == 4000);
  CHECK(kernel->statistics().objects == 400);
  REQUIRE(store(*kernel, key(5001), {.charge_bytes = 10}, at(1)) == CommitOutcome::kStored);
  CHECK(kernel->statistics().used_bytes == 4000);
  reload.capacity_bytes = 8000;
  REQUIRE(kernel->reconfigure(reload, at(2)));
  for (std::uint64_t id = 6000; id < 6400; ++id) {
    store(*kernel, key(id), {.charge_bytes = 10}, at(2));
  }
  CHECK(kernel->statistics().used_bytes == 8000);
}

TEST_CASE("What is reserved beyond a smaller capacity is waited for, not evicted again and again",
          "[cache]") {
  KernelOptions options = plain_options(10'000);
  options.shards = 4;
  const auto kernel = make_kernel(options);
  for (std::uint64_t id = 0; id < 10; ++id) {
    store(*kernel, key(id), {.charge_bytes = 100}, at(0));
  }
  REQUIRE(kernel->reserve(key(100), 8000, at(0)) == ReserveOutcome::kReserved);
  ReloadOptions reload = reload_options(options);
  reload.capacity_bytes = 4000;
  REQUIRE(kernel->reconfigure(reload, at(1)));
  CHECK(kernel->reclaim(1000, at(1)) == Kernel::Reclaimed::kSome);
  CHECK(kernel->statistics().objects == 0);
  CHECK(kernel->reclaim(1000, at(1)) == Kernel::Reclaimed::kNothing);
  kernel->abort(key(100), 8000, at(2));
  CHECK(kernel->reclaim(1000, at(2)) == Kernel::Reclaimed::kAll);
  CHECK(kernel->statistics().capacity_bytes == 4000);
}

TEST_CASE("Room for other uses is made from all shards, in bounded steps, until nothing is left",
          "[cache]") {
  KernelOptions options = plain_options(10'000);
  options.shards = 4;
  CountingOwner owner;
  const auto kernel = make_kernel(options, {.owner = &owner});
  for (std::uint64_t id = 0; id < 400; ++id) {
    store(*kernel, key(id), {.charge_bytes = 10, .payload = id + 1}, at(0));
  }
  const Kernel::Freed some = kernel->make_room({.bytes = 95, .victims_max = 50}, at(1));
  CHECK(some.bytes == 100);
  CHECK(some.victims == 10);
  CHECK(owner.total() == 10);
  CHECK(kernel->make_room({.bytes = 4000, .victims_max = 7}, at(1)).victims == 7);
  CHECK(kernel->statistics().used_bytes == 4000 - 170);
  CHECK(kernel->statistics().counters.evictions == 17);
  // Reserved bytes cannot be evicted.
  REQUIRE(kernel->reserve(key(1000), 500, at(1)) == ReserveOutcome::kReserved);
  CHECK(kernel->make_room({.bytes = 10'000, .victims_max = 1000}, at(2)).bytes == 4000 - 170);
  CHECK(kernel->make_room({.bytes = 10'000, .victims_max = 1000}, at(2)).bytes == 0);
  CHECK(kernel->statistics().used_bytes == 500);
  CHECK(kernel->statistics().objects == 0);
  kernel->abort(key(1000), 500, at(2));
  CHECK(kernel->statistics().used_bytes == 0);
}

TEST_CASE("Who owns the payloads learns which were evicted, and of nothing else", "[cache]") {
  CountingOwner owner;
  const auto kernel = make_kernel(plain_options(100), {.owner = &owner});
  for (std::uint64_t id = 1; id <= 12; ++id) {
    store(*kernel, key(id), {.charge_bytes = 10, .payload = id}, at(0));
  }
  CHECK(owner.evicted() == 2);
  // Invalidated, replaced, past its time: none of these is evicted.
  CHECK(kernel->invalidate(key(11), at(1)) == 1);
  store(*kernel, key(12), {.charge_bytes = 10, .payload = 112}, at(1));
  store(*kernel, key(13),
        {.charge_bytes = 10, .fresh_until = at(2), .keep_until = at(3), .payload = 13}, at(1));
  CHECK(kernel->lookup(key(13), at(4)).state == LookupState::kMiss);
  CHECK(owner.evicted() == 2);
  CHECK(owner.total() == 5);
  CHECK(kernel->make_room({.bytes = 30, .victims_max = 50}, at(5)).victims == 3);
  CHECK(owner.evicted() == 5);
  CHECK(owner.total() == 8);
  CHECK(kernel->statistics().counters.evictions == 5);
}

TEST_CASE("An entry that is found again is counted once, and anew when it is stored anew",
          "[cache]") {
  const auto kernel = make_kernel(plain_options(100));
  const auto reused = [&] { return kernel->statistics().counters.reused; };
  store(*kernel, key(1), {.charge_bytes = 10}, at(0));
  store(*kernel, key(2), {.charge_bytes = 10}, at(0));
  CHECK(reused() == 0);
  for (int i = 0; i < 3; ++i) CHECK(kernel->lookup(key(1), at(1)).state == LookupState::kFresh);
  CHECK(reused() == 1);
  CHECK(kernel->lookup(key(3), at(1)).state == LookupState::kMiss);
  CHECK(reused() == 1);
  store(*kernel, key(1), {.charge_bytes = 10}, at(2));
  CHECK(reused() == 1);
  CHECK(kernel->lookup(key(1), at(2)).state == LookupState::kFresh);
  CHECK(kernel->lookup(key(2), at(2)).state == LookupState::kFresh);
  CHECK(reused() == 3);
}

TEST_CASE("The kernel gives back every payload in the end", "[cache]") {
  CountingOwner owner;
  {
    const auto kernel = make_kernel(plain_options(100), {.owner = &owner});
    for (std::uint64_t id = 1; id <= 50; ++id) {
      store(*kernel, key(id), {.charge_bytes = 10, .payload = id}, at(0));
    }
    CHECK(owner.total() == 40);
  }
  CHECK(owner.total() == 50);
  CHECK(owner.each_once());
}

TEST_CASE("Impossible disks are refused with a reason", "[cache]") {
  struct Case {
    std::function<void(KernelOptions&)> change;
    std::string_view reason;
  };
  const auto tried = GENERATE(values<Case>({
      {[](KernelOptions& o) { o.disks[0].segments = kDiskSegmentsMin - 1; }, "a disk of"},
      {[](KernelOptions& o) { o.disks[0].segments = kSegmentsMax + 1; }, "a disk of"},
      {[](KernelOptions& o) { o.disks[0].segment_bytes = 65537; }, "segments of 65537 bytes"},
      {[](KernelOptions& o) { o.disks[0].segment_bytes = 32768; }, "segments of 32768 bytes"},
      {[](KernelOptions& o) { o.disks[0].segment_bytes = 1U << 29U; }, "segments of 536870912"},
      {[](KernelOptions& o) { o.disks.resize(kDisksMax + 1, o.disks[0]); }, "disks, accepted"},
      {[](KernelOptions& o) { o.disk_rules.reinsert_percent = 1000; }, "moving on up to 1000"},
      {[](KernelOptions& o) { o.disk_rules.write_rate_max = ~std::uint64_t{0}; }, "a write rate"},
  }));
  CAPTURE(std::string(tried.reason));
  KernelOptions options = plain_options(1 << 20);
  options.disks = {{.segments = 8, .segment_bytes = 64 * 1024}};
  CHECK(Kernel::create(options, {}, at(0)));
  tried.change(options);
  const auto refused = Kernel::create(options, {}, at(0));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find(tried.reason) != std::string::npos);
  CHECK(refused.error().message.find("accepted: ") != std::string::npos);
}

TEST_CASE("Impossible options are refused with a reason", "[cache]") {
  KernelOptions options = plain_options(100);
  options.shards = 3;
  const auto refused = Kernel::create(options, {}, at(0));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "3 shards, accepted: a power of two, 1 to 256");
  options = plain_options(0);
  CHECK_FALSE(Kernel::create(options, {}, at(0)));
  options = plain_options(100);
  options.variants_max = kVariantsMax + 1;
  CHECK_FALSE(Kernel::create(options, {}, at(0)));
  CHECK(parse_eviction("sieve").value() == EvictionPolicy::kSieve);
  CHECK(parse_admission("exact-second-hit").value() == AdmissionPolicy::kExactSecondHit);
  CHECK(parse_eviction("mru").error().message ==
        "unknown eviction policy \"mru\", accepted: sieve lru fifo s3-fifo slru 2q arc lfu "
        "gdsf w-tinylfu lhd random clock lru-2 lfuda hyperbolic lirs lecar cacheus "
        "w-tinylfu-adaptive lrb belady");
}

}  // namespace encore::cache::test

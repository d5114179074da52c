#include "proxy/transfer/transfer.h"

#include <algorithm>
#include <array>
#include <latch>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proxy/transfer/inflight.h"
#include "tests/catch.h"
#include "tests/transfer/reading.h"

namespace encore::server {
namespace {

TEST_CASE("readers on two loops see every byte once and the end", "[transfer]") {
  constexpr std::size_t kReaders = 6;
  constexpr std::uint64_t kBytes = 3'000'000;
  Fixture f(2);
  TransferHome& fetcher = *f.homes[0];
  const auto transfer = listed(f, fetcher);
  std::latch ended(kReaders);
  std::vector<std::unique_ptr<Reader>> readers;
  for (std::size_t i = 0; i < kReaders; ++i) {
    TransferHome& home = *f.homes[i % 2];
    readers.push_back(std::make_unique<Reader>(home, transfer, ended));
    Reader& reader = *readers.back();
    f.on(home, [&] {
      if (i == 0) {
        transfer->add_first_reader(reader);
      } else {
        CHECK(join(*transfer, reader) == JoinOutcome::kBeforeHead);
      }
    });
  }
  const store::BodyRef body = f.make_body();
  f.on(fetcher, [&] {
    CHECK(transfer->count_joined() == kReaders - 1);
    transfer->publish_response(some_response("head"), body, Joinable::kNo);
  });
  for (std::size_t step = 1; body->size() < kBytes; ++step) {
    f.on(fetcher, [&] {
      const auto left = static_cast<std::size_t>(kBytes - body->size());
      append(*body, std::min(left, step * 997 % 60'000 + 1));
      // As a fetch does: what all have passed goes, once all have their place.
      if (transfer->all_opened()) body->stop_retaining();
      transfer->publish_body();
    });
  }
  f.on(fetcher, [&] {
    body->complete();
    transfer->publish_body();
  });
  ended.wait();
  for (std::size_t i = 0; i < kReaders; ++i) {
    f.on(*f.homes[i % 2], [&] {
      CHECK(readers[i]->bytes == kBytes);
      CHECK(readers[i]->complete);
      CHECK_FALSE(readers[i]->wrong);
      CHECK(readers[i]->head == "head");
    });
  }
  CHECK_FALSE(transfer->has_readers());
  CHECK(transfer->slowest_position(17) == 17);
}

TEST_CASE("a failure reaches the readers of all loops with its reason", "[transfer]") {
  Fixture f(2);
  const auto transfer = listed(f, *f.homes[0]);
  std::latch ended(2);
  Reader here(*f.homes[0], transfer, ended);
  Reader there(*f.homes[1], transfer, ended);
  f.on(*f.homes[0], [&] { transfer->add_first_reader(here); });
  f.on(*f.homes[1], [&] { CHECK(join(*transfer, there) == JoinOutcome::kBeforeHead); });
  f.on(*f.homes[0],
       [&] { transfer->publish_failure({502, Outcome::kOriginAborted, "origin-closed"}); });
  ended.wait();
  CHECK(here.failure == "origin-closed");
  CHECK(there.failure == "origin-closed");
}

TEST_CASE("a join says whether the fetch counts it", "[transfer]") {
  Fixture f(1);
  TransferHome& worker = *f.homes[0];
  const auto transfer = std::make_shared<Transfer>(worker, filter::Hash128{}, key_of("key"));
  std::latch ended(5);
  std::array<std::unique_ptr<Reader>, 5> readers;
  for (auto& reader : readers) reader = std::make_unique<Reader>(worker, transfer, ended);
  const store::BodyRef body = f.make_body();
  f.on(worker, [&] {
    transfer->add_first_reader(*readers[0]);
    CHECK(join(*transfer, *readers[1]) == JoinOutcome::kBeforeHead);
    CHECK(transfer->count_joined() == 1);
    // Nobody comes between the count and the head, and finds nothing.
    CHECK(join(*transfer, *readers[2]) == JoinOutcome::kBehindHead);
    transfer->publish_response(some_response(""), body, Joinable::kToRead);
    CHECK(join(*transfer, *readers[3]) == JoinOutcome::kBehindHead);
    CHECK_FALSE(transfer->is_store_wanted());
    transfer->want_store();
    CHECK(transfer->is_store_wanted());
    transfer->stop_joining();
    CHECK(join(*transfer, *readers[4]) == JoinOutcome::kNo);
    for (auto& reader : readers) reader.reset();
  });
}

TEST_CASE("who wants what is being stored waits for its end, and holds nobody back", "[transfer]") {
  Fixture f(1);
  TransferHome& worker = *f.homes[0];
  const auto transfer = std::make_shared<Transfer>(worker, filter::Hash128{}, key_of("key"));
  std::latch ended(4);
  std::array<std::unique_ptr<Reader>, 4> readers;
  for (auto& reader : readers) reader = std::make_unique<Reader>(worker, transfer, ended);
  const store::BodyRef body = f.make_body();
  f.on(worker, [&] {
    transfer->add_first_reader(*readers[0]);
    CHECK(join(*transfer, *readers[1], JoinScope::kBeingStored) == JoinOutcome::kNo);
    CHECK_FALSE(transfer->is_awaitable());
    transfer->publish_response(some_response(""), body, Joinable::kUntilStored);
    CHECK(transfer->is_awaitable());
    CHECK(join(*transfer, *readers[1]) == JoinOutcome::kUntilStored);
    CHECK(join(*transfer, *readers[2], JoinScope::kBeingStored) == JoinOutcome::kUntilStored);
    transfer->mark_waiting(*readers[1]);
    transfer->mark_opened(*readers[0]);
    transfer->advance(*readers[0], 5);
    readers[0]->set_over_share(true);
    CHECK(transfer->is_over_share());
    transfer->give_up_head();
    CHECK(transfer->is_awaitable());
    CHECK(transfer->all_opened());
    CHECK(transfer->slowest_position(17) == 5);
    // A reader that waits for the end is none of those that a slow one holds back.
    CHECK_FALSE(transfer->blame_slowest({.written = 17,
                                         .elapsed = std::chrono::minutes(1),
                                         .now = MonotonicTime(std::chrono::hours(1))}));
    CHECK_FALSE(readers[0]->is_cut());
    transfer->stop_joining();
    CHECK_FALSE(transfer->is_awaitable());
    CHECK(join(*transfer, *readers[3], JoinScope::kBeingStored) == JoinOutcome::kNo);
    for (auto& reader : readers) reader.reset();
  });
}

TEST_CASE("nobody joins what is given up because nobody reads it", "[transfer]") {
  Fixture f(2);
  TransferHome& fetcher = *f.homes[0];
  TransferHome& other = *f.homes[1];
  for (int round = 0; round < 300; ++round) {
    const auto transfer = listed(f, fetcher);
    std::latch ended(1);
    Reader reader(other, transfer, ended);
    std::latch both(2);
    JoinOutcome joined = JoinOutcome::kNo;
    bool given_up = false;
    other.post([&] {
      joined = join(*transfer, reader);
      both.count_down();
    });
    fetcher.post([&] {
      given_up = transfer->close_if_unread();
      both.count_down();
    });
    both.wait();
    REQUIRE((joined == JoinOutcome::kNo) == given_up);
    REQUIRE(transfer->has_readers() != given_up);
    f.on(other, [&] { reader.leave(); });
  }
}

TEST_CASE("readers that leave while they are woken are not called after", "[transfer]") {
  Fixture f(2);
  TransferHome& fetcher = *f.homes[0];
  TransferHome& other = *f.homes[1];
  const auto transfer = listed(f, fetcher);
  const store::BodyRef body = f.make_body();
  f.on(fetcher,
       [&] { transfer->publish_response(some_response("head"), body, Joinable::kToRead); });
  constexpr int kRounds = 200;
  std::latch ended(kRounds);
  for (int round = 0; round < kRounds; ++round) {
    fetcher.post([&] {
      append(*body, 100);
      transfer->publish_body();
    });
    other.post([&] {
      auto reader = std::make_unique<Reader>(other, transfer, ended);
      (void)join(*transfer, *reader);
      reader->on_transfer();
      // Gone with wake-ups for it on their way; the next one may get its memory.
      if (reader->wrong) FAIL_CHECK("wrong bytes");
    });
  }
  ended.wait();
  f.on(fetcher, [&] { body->complete(); });
  CHECK_FALSE(transfer->has_readers());
}

// Two readers in place, and how long the origin was paused for the slowest of them.
struct TwoReaders {
  explicit TwoReaders(TransferHome& worker, const net::Address* of_a = nullptr,
                      const net::Address* of_b = nullptr)
      : transfer(std::make_shared<Transfer>(worker, filter::Hash128{}, key_of("key"))),
        ended(2),
        a(worker, transfer, ended),
        b(worker, transfer, ended) {
    a.set_client(of_a);
    b.set_client(of_b);
    transfer->add_first_reader(a);
    (void)join(*transfer, b);
    transfer->mark_opened(a);
    transfer->mark_opened(b);
  }
  bool paused(std::chrono::milliseconds elapsed) {
    now += elapsed;
    return transfer->blame_slowest({.written = 1000, .elapsed = elapsed, .now = now});
  }

  std::shared_ptr<Transfer> transfer;
  std::latch ended;
  Reader a;
  Reader b;
  MonotonicTime now{std::chrono::seconds(100)};
};

TEST_CASE("a reader for which the others always wait is cut after two seconds", "[transfer]") {
  Fixture f(1);
  f.on(*f.homes[0], [&] {
    TwoReaders two(*f.homes[0]);
    two.transfer->advance(two.a, 400);
    two.transfer->advance(two.b, 1000);
    CHECK_FALSE(two.paused(std::chrono::milliseconds(900)));
    CHECK_FALSE(two.paused(std::chrono::milliseconds(1000)));
    CHECK(two.paused(std::chrono::milliseconds(100)));
    CHECK(two.a.is_cut());
    CHECK_FALSE(two.b.is_cut());
    // It does not count any more.
    CHECK(two.transfer->slowest_position(2000) == 1000);
    CHECK_FALSE(two.paused(std::chrono::milliseconds(10'000)));
  });
}

TEST_CASE("nobody is to blame where nobody waits, or where all do in turn", "[transfer]") {
  Fixture f(1);
  f.on(*f.homes[0], [&] {
    TwoReaders two(*f.homes[0]);
    two.transfer->advance(two.a, 400);
    two.transfer->advance(two.b, 500);
    CHECK_FALSE(two.paused(std::chrono::milliseconds(60'000)));
    for (int turn = 0; turn < 1000; ++turn) {
      two.transfer->advance(two.a, turn % 2 == 0 ? 400 : 1000);
      two.transfer->advance(two.b, turn % 2 == 0 ? 1000 : 400);
      REQUIRE_FALSE(two.paused(std::chrono::milliseconds(100)));
    }
  });
}

TEST_CASE("those of one client that are behind together are cut together", "[transfer]") {
  Fixture f(1);
  const bool are_one_clients = GENERATE(true, false);
  const auto client = net::Address::parse_ip("192.0.2.1", 1);
  const auto other = net::Address::parse_ip(are_one_clients ? "192.0.2.1" : "192.0.2.2", 2);
  f.on(*f.homes[0], [&] {
    TwoReaders two(*f.homes[0], &*client, &*other);
    std::latch ended(3);
    Reader waits(*f.homes[0], two.transfer, ended);
    Reader near(*f.homes[0], two.transfer, ended);
    near.set_client(&*client);
    for (Reader* reader : {&waits, &near}) {
      (void)join(*two.transfer, *reader);
      two.transfer->mark_opened(*reader);
    }
    two.transfer->advance(two.a, 400);
    two.transfer->advance(two.b, 500);
    two.transfer->advance(near, 900);
    two.transfer->advance(waits, 1000);
    CHECK_FALSE(two.paused(std::chrono::milliseconds(1900)));
    CHECK(two.paused(std::chrono::milliseconds(100)));
    CHECK(two.a.is_cut());
    CHECK(two.b.is_cut() == are_one_clients);
    CHECK_FALSE(near.is_cut());
    CHECK_FALSE(waits.is_cut());
    near.leave();
    waits.leave();
  });
}

TEST_CASE("a reader is cut that is less than half as fast as the others, and no other",
          "[transfer]") {
  Fixture f(1);
  const int share = GENERATE(40, 60);  // per cent of the time that the others wait for it
  f.on(*f.homes[0], [&] {
    TwoReaders two(*f.homes[0]);
    two.transfer->advance(two.a, 400);
    two.transfer->advance(two.b, 1000);
    bool cut = false;
    for (int turn = 0; turn < 200 && !cut; ++turn) {
      two.now += std::chrono::milliseconds(100 - share);
      cut = two.paused(std::chrono::milliseconds(share));
    }
    CHECK(cut == (share == 60));
  });
}

TEST_CASE(
    "readers that are behind are asked what their clients take, and to leave once others wait",
    "[transfer]") {
  using ReaderProbe = Transfer::ReaderProbe;
  using Others = Transfer::Others;
  using Question = TransferReader::Question;
  Fixture f(1);
  f.on(*f.homes[0], [&] {
    TwoReaders two(*f.homes[0]);
    CHECK(two.transfer->is_read_by_several());
    two.transfer->advance(two.a, 400);
    two.transfer->advance(two.b, 500);
    for (const ReaderProbe asking : {ReaderProbe::kToKnow, ReaderProbe::kVerdict}) {
      CHECK(two.transfer->probe_blocking_readers(1000, asking) == Others::kBehind);
      CHECK(two.a.take_question() == Question::kNone);
      CHECK(two.b.take_question() == Question::kNone);
    }
    two.transfer->advance(two.b, 1000);
    CHECK(two.transfer->probe_blocking_readers(1000, ReaderProbe::kNobody) == Others::kWait);
    CHECK(two.a.take_question() == Question::kNone);
    CHECK(two.transfer->probe_blocking_readers(1000, ReaderProbe::kToKnow) == Others::kWait);
    CHECK(two.a.take_question() == Question::kHowFar);
    CHECK(two.b.take_question() == Question::kHowFar);
    CHECK(two.transfer->probe_blocking_readers(1000, ReaderProbe::kVerdict) == Others::kWait);
    CHECK(two.a.take_question() == Question::kLeave);
    CHECK(two.a.take_question() == Question::kNone);
    CHECK(two.b.take_question() == Question::kHowFar);
    // Bytes in its connection are taken first.
    two.b.set_busy(true);
    CHECK(two.transfer->probe_blocking_readers(1000, ReaderProbe::kNobody) == Others::kBusy);
    CHECK_FALSE(two.transfer->blame_slowest({.written = 1000,
                                             .elapsed = std::chrono::hours(1),
                                             .now = MonotonicTime(std::chrono::hours(2))}));
    two.b.set_busy(false);
    CHECK(two.transfer->blame_slowest({.written = 1000,
                                       .elapsed = std::chrono::hours(1),
                                       .now = MonotonicTime(std::chrono::hours(3))}));
  });
}

TEST_CASE("a wake-up is for one life of a reader", "[transfer]") {
  Fixture f(2);
  TransferHome& fetcher = *f.homes[0];
  TransferHome& other = *f.homes[1];
  const auto transfer = listed(f, fetcher);
  // Counts what it is called for.
  struct Counting final : public TransferReader {
    explicit Counting(TransferHome& worker) : TransferReader(worker) {}
    void on_transfer() override { ++calls; }
    void on_interim(std::string_view) override {}
    int calls = 0;
  } reader(other);
  f.on(other, [&] {
    CHECK(join(*transfer, reader) == JoinOutcome::kBeforeHead);
    // Published meanwhile; by the time that the wake-up arrives the reader has left, and what joins
    // next lies at the same address.
    std::latch published(1);
    fetcher.post([&] {
      transfer->publish_body();
      published.count_down();
    });
    published.wait();
    transfer->leave(reader);
    CHECK(join(*transfer, reader) == JoinOutcome::kBeforeHead);
  });
  f.on(other, [&] {
    CHECK(reader.calls == 0);
    transfer->leave(reader);
  });
}

TEST_CASE("a transfer is its home's alone again when nobody elsewhere can have it", "[transfer]") {
  Fixture f(2);
  TransferHome& here = *f.homes[0];
  TransferHome& there = *f.homes[1];
  const auto transfer = listed(f, here);
  std::latch ended(3);
  Reader first(here, transfer, ended);
  Reader late(here, transfer, ended);
  Reader elsewhere(there, transfer, ended);
  f.on(here, [&] { transfer->add_first_reader(first); });
  f.on(there, [&] { CHECK(join(*transfer, elsewhere) == JoinOutcome::kBeforeHead); });
  f.on(here, [&] {
    transfer->set_unlisted();
    // One elsewhere reads still, and is woken.
    transfer->publish_failure({502, Outcome::kOriginAborted, "origin-closed"});
  });
  f.on(there, [&] { CHECK(elsewhere.failure == "origin-closed"); });
  CHECK_FALSE(transfer->has_readers());
  late.leave();
}

// Counts its notifications.
struct Told final : public Producer {
  void on_readers_changed() override { ++changes; }
  void on_reader_advanced() override { ++advances; }
  bool accepts_upload() const override { return false; }
  void upload(std::string_view, bool, std::string_view) override {}
  int changes = 0;
  int advances = 0;
};

TEST_CASE("a producer is told at home, and no more once it has taken leave", "[transfer]") {
  Fixture f(2);
  TransferHome& here = *f.homes[0];
  TransferHome& there = *f.homes[1];
  const auto transfer = listed(f, here);
  std::latch ended(2);
  Reader first(here, transfer, ended);
  Reader elsewhere(there, transfer, ended);
  Told producer;
  f.on(here, [&] {
    transfer->set_producer(&producer);
    CHECK(transfer->producer_here() == &producer);
    transfer->add_first_reader(first);
    transfer->advance(first, 1);
    CHECK(producer.advances == 0);  // it is not held back
    transfer->set_producer_paused(true);
    transfer->advance(first, 2);
    CHECK(producer.advances == 1);
  });
  f.on(there, [&] {
    CHECK(transfer->producer_here() == nullptr);
    (void)join(*transfer, elsewhere);
    transfer->advance(elsewhere, 3);
  });
  f.on(here, [&] { CHECK(producer.advances == 2); });
  f.on(there, [&] { elsewhere.leave(); });
  f.on(here, [&] {
    CHECK(producer.changes == 1);
    transfer->set_producer(nullptr);
    first.leave();
    CHECK(producer.changes == 1);
  });
}

}  // namespace
}  // namespace encore::server

#include "proxy/transfer/transfer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proxy/http/parser.h"
#include "proxy/store/memory_store.h"
#include "proxy/transfer/inflight.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

std::shared_ptr<const std::string> key_of(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

char byte_at(std::uint64_t offset) { return static_cast<char>('a' + offset * 7 % 26); }

// Threads with a loop and a home each, and a store for the bodies.
struct Fixture {
  explicit Fixture(std::size_t count) {
    auto made = store::make_memory_store({.limit_bytes = 256U << 20U});
    REQUIRE(made.has_value());
    store = std::move(*made);
    for (std::size_t i = 0; i < count; ++i) {
      auto loop = net::Loop::create();
      REQUIRE(loop.has_value());
      loops.push_back(std::move(*loop));
      homes.push_back(std::make_unique<TransferHome>(*loops.back()));
    }
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back([&loop = *loops[i], &home = *homes[i]] {
        const TransferHome::Turn turn(home);
        loop.run();
      });
    }
  }
  ~Fixture() {
    for (auto& loop : loops) loop->stop();
    for (auto& thread : threads) thread.join();
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  // Runs on the home's loop and waits for it.
  void on(TransferHome& home, const std::function<void()>& call) {
    std::latch done(1);
    home.post([&] {
      call();
      done.count_down();
    });
    done.wait();
  }
  store::BodyRef make_body() {
    auto body = store->make_body({});
    REQUIRE(body.has_value());
    return std::move(*body);
  }

  std::unique_ptr<store::Store> store;
  std::vector<std::unique_ptr<net::Loop>> loops;
  std::vector<std::unique_ptr<TransferHome>> homes;
  std::vector<std::thread> threads;
};

// One that others may find, made at home.
std::shared_ptr<Transfer> listed(Fixture& f, TransferHome& home) {
  const auto transfer = std::make_shared<Transfer>(home, filter::Hash128{}, key_of("key"));
  f.on(home, [&] { transfer->set_listed(); });
  return transfer;
}

const http::Fields kNoFields;
const http::VaryOptions kVary;

// Joins for a request without fields.
JoinOutcome join(Transfer& transfer, TransferReader& reader, JoinWish wish = JoinWish::kAny) {
  const http::VariantKeys own(kNoFields, kVary);
  std::string names;
  return transfer.join(reader, own, wish, names);
}

std::shared_ptr<const SharedResponse> some_response(std::string text) {
  auto response = std::make_shared<SharedResponse>();
  response->head = std::move(text);
  response->shareable = true;
  return response;
}

// Reads the body as it comes and checks each byte. Lives on its worker.
class Reader final : public TransferReader {
 public:
  Reader(TransferHome& worker, std::shared_ptr<Transfer> transfer, std::latch& ended)
      : TransferReader(worker), transfer_(std::move(transfer)), ended_(ended) {}
  ~Reader() override { leave(); }

  void on_transfer() override {
    if (transfer_ == nullptr || transfer_->phase() == TransferPhase::kWaiting) return;
    if (transfer_->phase() != TransferPhase::kSharing) {
      if (transfer_->phase() == TransferPhase::kFailed) failure = transfer_->failure().detail;
      leave();
      return;
    }
    if (!cursor_) {
      head = transfer_->response().head;
      cursor_ = transfer_->body()->open(0);
      if (!cursor_) {
        not_kept = true;
        leave();
        return;
      }
      transfer_->mark_opened(*this);
    }
    // The state first: what came before the end is then seen.
    const store::BodyState state = cursor_->state();
    std::array<iovec, 8> parts;
    while (true) {
      const auto peeked = cursor_->peek(parts, 100'000);
      if (peeked.bytes == 0) break;
      for (std::size_t i = 0; i < peeked.parts; ++i) check(parts[i]);
      cursor_->advance(peeked.bytes);
      transfer_->advance(*this, cursor_->position());
    }
    if (state == store::BodyState::kGrowing) return;
    complete = state == store::BodyState::kComplete;
    leave();
  }
  void on_interim(std::string_view) override {}

  void leave() {
    if (transfer_ == nullptr) return;
    std::exchange(transfer_, nullptr)->leave(*this);
    ended_.count_down();
  }

  std::uint64_t bytes = 0;
  bool wrong = false;
  bool complete = false;
  bool not_kept = false;
  std::string head;
  std::string failure;

 private:
  void check(const iovec& part) {
    const auto* text = static_cast<const char*>(part.iov_base);
    for (std::size_t i = 0; i < part.iov_len; ++i) wrong = wrong || text[i] != byte_at(bytes + i);
    bytes += part.iov_len;
  }

  std::shared_ptr<Transfer> transfer_;
  std::latch& ended_;
  std::optional<store::Body::Cursor> cursor_;
};

void append(store::Body& body, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = byte_at(body.size() + i);
  REQUIRE(body.append(std::as_bytes(std::span(text))) == bytes);
}

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
    CHECK(join(*transfer, *readers[1], JoinWish::kBeingStored) == JoinOutcome::kNo);
    CHECK_FALSE(transfer->is_awaitable());
    transfer->publish_response(some_response(""), body, Joinable::kUntilStored);
    CHECK(transfer->is_awaitable());
    CHECK(join(*transfer, *readers[1]) == JoinOutcome::kUntilStored);
    CHECK(join(*transfer, *readers[2], JoinWish::kBeingStored) == JoinOutcome::kUntilStored);
    transfer->mark_waiting(*readers[1]);
    transfer->mark_opened(*readers[0]);
    transfer->advance(*readers[0], 5);
    readers[0]->set_over_share(true);
    CHECK(transfer->is_over_share());
    transfer->give_up_head();
    CHECK(transfer->is_awaitable());
    CHECK(transfer->all_opened());
    CHECK(transfer->slowest_position(17) == 5);
    // Who waits for the end is none of the others that a slow one holds back.
    CHECK_FALSE(transfer->blame_slowest({.written = 17,
                                         .elapsed = std::chrono::minutes(1),
                                         .now = MonotonicTime(std::chrono::hours(1))}));
    CHECK_FALSE(readers[0]->is_cut());
    transfer->stop_joining();
    CHECK_FALSE(transfer->is_awaitable());
    CHECK(join(*transfer, *readers[3], JoinWish::kBeingStored) == JoinOutcome::kNo);
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
      // Gone with wake-ups for it under way; the next one may get its memory.
      if (reader->wrong) FAIL_CHECK("wrong bytes");
    });
  }
  ended.wait();
  f.on(fetcher, [&] { body->complete(); });
  CHECK_FALSE(transfer->has_readers());
}

// Two readers in place, and how long the origin was paused for the slowest of them.
struct TwoReaders {
  explicit TwoReaders(TransferHome& worker)
      : transfer(std::make_shared<Transfer>(worker, filter::Hash128{}, key_of("key"))),
        ended(2),
        a(worker, transfer, ended),
        b(worker, transfer, ended) {
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

TEST_CASE("a key's transfer is found until it is removed", "[transfer]") {
  Fixture f(1);
  TransferHome& worker = *f.homes[0];
  Inflight inflight;
  const filter::Hash128 hash{1, 2};
  const auto first = std::make_shared<Transfer>(worker, hash, key_of("key"));
  const auto second = std::make_shared<Transfer>(worker, hash, key_of("key"));
  const auto collides = std::make_shared<Transfer>(worker, hash, key_of("other key"));
  std::latch ended(2);
  Reader a(worker, first, ended);
  Reader b(worker, collides, ended);
  f.on(worker, [&] {
    http::VariantKeys own(kNoFields, kVary);
    const Inflight::Wanted wanted{.hash = hash, .key = "key", .variants = own, .reader = a};
    CHECK(inflight.join_or_enter(wanted, nullptr).transfer == nullptr);
    CHECK(inflight.join_or_enter(wanted, first).joined == JoinOutcome::kNo);
    CHECK(inflight
              .join_or_enter({.hash = hash, .key = "other key", .variants = own, .reader = b},
                             collides)
              .transfer == collides);
    const auto claim = inflight.join_or_enter(wanted, second);
    CHECK(claim.transfer == first);
    CHECK(claim.joined == JoinOutcome::kBeforeHead);
    Inflight::Wanted later = wanted;
    later.settings = 1;
    CHECK(inflight.join_or_enter(later, nullptr).transfer == nullptr);
    CHECK_FALSE(inflight.enter_if_absent(second));
    inflight.remove(*second);  // it is not there, and takes no other with it
    CHECK_FALSE(inflight.enter_if_absent(second));
    inflight.remove(*first);
    inflight.remove(*collides);
    CHECK(inflight.enter_if_absent(second));
    a.leave();
    b.leave();
  });
}

TEST_CASE("who finds no transfer is told that its response was stored a moment ago", "[transfer]") {
  Fixture f(1);
  TransferHome& worker = *f.homes[0];
  Inflight inflight;
  const filter::Hash128 hash{1, 2};
  const auto first = std::make_shared<Transfer>(worker, hash, key_of("key"));
  const auto second = std::make_shared<Transfer>(worker, hash, key_of("key"));
  std::latch ended(1);
  Reader reader(worker, first, ended);
  f.on(worker, [&] {
    http::VariantKeys own(kNoFields, kVary);
    const Inflight::Wanted wanted{
        .hash = hash, .key = "key", .variants = own, .reader = reader, .minds_stored = true};
    CHECK(inflight.join_or_enter(wanted, first).transfer == first);
    inflight.remove_stored(*first);
    CHECK(inflight.join_or_enter(wanted, second).joined == JoinOutcome::kStoredMeanwhile);
    CHECK(inflight.join_or_enter(wanted, nullptr).joined == JoinOutcome::kStoredMeanwhile);
    Inflight::Wanted again = wanted;
    again.minds_stored = false;
    CHECK(inflight.join_or_enter(again, second).transfer == second);
    // As long as it is under way, it is joined first.
    CHECK(inflight.join_or_enter(wanted, nullptr).joined == JoinOutcome::kBeforeHead);
    second->leave(reader);
    inflight.remove(*second);
    CHECK(inflight.join_or_enter(wanted, nullptr).joined == JoinOutcome::kStoredMeanwhile);
    // Others take its place.
    for (std::uint64_t i = 0; i < 16; ++i) {
      const auto other =
          std::make_shared<Transfer>(worker, filter::Hash128{i + 5, 2}, key_of("other"));
      inflight.enter(other);
      inflight.remove_stored(*other);
    }
    CHECK(inflight.join_or_enter(wanted, nullptr).joined == JoinOutcome::kNo);
  });
}

// A request's fields that select a variant.
struct Selecting {
  explicit Selecting(const std::string& language)
      : text("GET / HTTP/1.1\r\nHost: h\r\nX-Lang: " + language + "\r\n\r\n") {
    http::ParseError error;
    const auto status = http::parse_request(text, {}, head, error);
    REQUIRE(status == http::ParseStatus::kComplete);
  }
  std::string text;
  http::RequestHead head;
  http::VariantKeys keys{head.fields, kVary};
};

TEST_CASE("nobody waits for another variant than the one he wants", "[transfer]") {
  Fixture f(1);
  TransferHome& worker = *f.homes[0];
  Inflight inflight;
  const filter::Hash128 hash{1, 2};
  std::array<std::shared_ptr<Transfer>, 4> transfers;
  for (auto& transfer : transfers) {
    transfer = std::make_shared<Transfer>(worker, hash, key_of("key"));
  }
  std::latch ended(8);
  std::array<std::unique_ptr<Reader>, 8> readers;
  for (auto& reader : readers) reader = std::make_unique<Reader>(worker, transfers[0], ended);
  f.on(worker, [&] {
    Selecting english("en");
    Selecting german("de");
    Selecting french("fr");
    const auto claim = [&](Selecting& by, std::size_t reader, std::size_t transfer) {
      return inflight.join_or_enter(
          {.hash = hash, .key = "key", .variants = by.keys, .reader = *readers[reader]},
          transfers[transfer]);
    };
    // The first is expected to bring the English one, as one that validates it is.
    transfers[0]->expect({.names = "x-lang", .key = english.keys.make("x-lang")});
    CHECK(claim(english, 0, 0).joined == JoinOutcome::kNo);
    CHECK(claim(german, 1, 1).transfer == transfers[1]);
    // It was told by which fields the other differs, so that it is joined by its own alone.
    CHECK(transfers[1]->is_expected());
    CHECK(claim(english, 2, 2).transfer == transfers[0]);
    CHECK(claim(german, 3, 2).transfer == transfers[1]);
    CHECK(claim(french, 4, 2).transfer == transfers[2]);
    // With its head there what is known of it counts.
    auto response = std::make_shared<SharedResponse>();
    response->names = "x-lang";
    response->variant_key = german.keys.make("x-lang");
    const store::BodyRef body = f.make_body();
    transfers[2]->publish_response(response, body, Joinable::kToRead);
    CHECK(claim(french, 5, 3).transfer == transfers[3]);
    const auto last = claim(german, 6, 3);
    CHECK(last.transfer != transfers[3]);
    for (auto& transfer : transfers) inflight.remove(*transfer);
    transfers[0]->leave(*readers[2]);
    transfers[1]->leave(*readers[3]);
    last.transfer->leave(*readers[6]);
    for (auto& reader : readers) reader.reset();
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

// Counts what it is told.
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

TEST_CASE("what is not shared is remembered for its time, and why", "[transfer]") {
  using enum Inflight::Unshared;
  Inflight inflight;
  const filter::Hash128 hash{1, 2};
  const MonotonicTime now{std::chrono::seconds(100)};
  CHECK(inflight.unshared(hash, now) == kNo);
  for (const auto why : {kValidated, kAnswer, kUncacheable}) {
    inflight.remember_unshared(hash, why, now + std::chrono::seconds(5));
    CHECK(inflight.unshared(hash, now) == why);
    CHECK(inflight.unshared(filter::Hash128{2, 1}, now) == kNo);
    CHECK(inflight.unshared(hash, now + std::chrono::seconds(5)) == kNo);
  }
  inflight.forget_unshared(hash);
  CHECK(inflight.unshared(hash, now) == kNo);
}

}  // namespace
}  // namespace encore::server

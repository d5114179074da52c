#include "proxy/server/transfer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proxy/server/inflight.h"
#include "proxy/server/worker.h"
#include "proxy/store/memory_store.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

std::shared_ptr<const std::string> key_of(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

char byte_at(std::uint64_t offset) { return static_cast<char>('a' + offset * 7 % 26); }

// Workers without listeners, and a store for the bodies.
struct Fixture {
  explicit Fixture(std::size_t count) {
    auto store = store::make_memory_store({.limit_bytes = 256U << 20U});
    REQUIRE(store.has_value());
    shared.store = std::move(*store);
    auto runtime = Runtime::create(config::Config{}, {}, "test");
    REQUIRE(runtime.has_value());
    for (std::size_t i = 0; i < count; ++i) {
      shared.stats.push_back(std::make_unique<WorkerStats>());
      auto worker = Worker::create(shared, *shared.stats.back(), *runtime);
      REQUIRE(worker.has_value());
      workers.push_back(std::move(*worker));
    }
    for (auto& worker : workers) worker->start();
  }
  ~Fixture() {
    for (auto& worker : workers) worker->drain(std::chrono::seconds(30));
    for (auto& worker : workers) worker->join();
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  // Runs on the worker's loop and waits for it.
  void on(Worker& worker, const std::function<void()>& call) {
    std::latch done(1);
    worker.post([&] {
      call();
      done.count_down();
    });
    done.wait();
  }
  store::BodyRef make_body() {
    auto body = shared.store->make_body({});
    REQUIRE(body.has_value());
    return std::move(*body);
  }

  Shared shared;
  std::vector<std::unique_ptr<Worker>> workers;
};

std::shared_ptr<const SharedResponse> some_response(std::string text) {
  auto response = std::make_shared<SharedResponse>();
  response->head = std::move(text);
  response->shareable = true;
  return response;
}

// Reads the body as it comes and checks each byte. Lives on its worker.
class Reader final : public TransferReader {
 public:
  Reader(Worker& worker, std::shared_ptr<Transfer> transfer, std::latch& ended)
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

TEST_CASE("readers on two loops see every byte once and the end", "[server][transfer]") {
  constexpr std::size_t kReaders = 6;
  constexpr std::uint64_t kBytes = 3'000'000;
  Fixture f(2);
  Worker& fetcher = *f.workers[0];
  const auto transfer = std::make_shared<Transfer>(fetcher, filter::Hash128{}, key_of("key"));
  std::latch ended(kReaders);
  std::vector<std::unique_ptr<Reader>> readers;
  for (std::size_t i = 0; i < kReaders; ++i) {
    Worker& home = *f.workers[i % 2];
    readers.push_back(std::make_unique<Reader>(home, transfer, ended));
    Reader& reader = *readers.back();
    f.on(home, [&] {
      if (i == 0) {
        transfer->add_first_reader(reader);
      } else {
        CHECK(transfer->join(reader) == JoinOutcome::kBeforeHead);
      }
    });
  }
  const store::BodyRef body = f.make_body();
  f.on(fetcher, [&] {
    CHECK(transfer->close_joining() == kReaders - 1);
    transfer->publish_response(some_response("head"), body, false);
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
    f.on(*f.workers[i % 2], [&] {
      CHECK(readers[i]->bytes == kBytes);
      CHECK(readers[i]->complete);
      CHECK_FALSE(readers[i]->wrong);
      CHECK(readers[i]->head == "head");
    });
  }
  CHECK_FALSE(transfer->has_readers());
  CHECK(transfer->slowest_position(17) == 17);
}

TEST_CASE("a failure reaches the readers of all loops with its reason", "[server][transfer]") {
  Fixture f(2);
  const auto transfer = std::make_shared<Transfer>(*f.workers[0], filter::Hash128{}, key_of("key"));
  std::latch ended(2);
  Reader here(*f.workers[0], transfer, ended);
  Reader there(*f.workers[1], transfer, ended);
  f.on(*f.workers[0], [&] { transfer->add_first_reader(here); });
  f.on(*f.workers[1], [&] { CHECK(transfer->join(there) == JoinOutcome::kBeforeHead); });
  f.on(*f.workers[0],
       [&] { transfer->publish_failure({502, Outcome::kOriginAborted, "origin-closed"}); });
  ended.wait();
  CHECK(here.failure == "origin-closed");
  CHECK(there.failure == "origin-closed");
}

TEST_CASE("a join says whether the fetch counts it", "[server][transfer]") {
  Fixture f(1);
  Worker& worker = *f.workers[0];
  const auto transfer = std::make_shared<Transfer>(worker, filter::Hash128{}, key_of("key"));
  std::latch ended(4);
  std::array<std::unique_ptr<Reader>, 4> readers;
  for (auto& reader : readers) reader = std::make_unique<Reader>(worker, transfer, ended);
  const store::BodyRef body = f.make_body();
  f.on(worker, [&] {
    transfer->add_first_reader(*readers[0]);
    CHECK(transfer->join(*readers[1]) == JoinOutcome::kBeforeHead);
    CHECK(transfer->close_joining() == 1);
    CHECK(transfer->join(*readers[2]) == JoinOutcome::kNo);
    transfer->publish_response(some_response(""), body, true);
    CHECK(transfer->join(*readers[2]) == JoinOutcome::kBehindHead);
    transfer->stop_joining();
    CHECK(transfer->join(*readers[3]) == JoinOutcome::kNo);
    for (auto& reader : readers) reader.reset();
  });
}

TEST_CASE("nobody joins what is given up because nobody reads it", "[server][transfer]") {
  Fixture f(2);
  Worker& fetcher = *f.workers[0];
  Worker& other = *f.workers[1];
  for (int round = 0; round < 300; ++round) {
    const auto transfer = std::make_shared<Transfer>(fetcher, filter::Hash128{}, key_of("key"));
    std::latch ended(1);
    Reader reader(other, transfer, ended);
    std::latch both(2);
    JoinOutcome joined = JoinOutcome::kNo;
    bool given_up = false;
    other.post([&] {
      joined = transfer->join(reader);
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

TEST_CASE("readers that leave while they are woken are not called after", "[server][transfer]") {
  Fixture f(2);
  Worker& fetcher = *f.workers[0];
  Worker& other = *f.workers[1];
  const auto transfer = std::make_shared<Transfer>(fetcher, filter::Hash128{}, key_of("key"));
  const store::BodyRef body = f.make_body();
  f.on(fetcher, [&] { transfer->publish_response(some_response("head"), body, true); });
  constexpr int kRounds = 200;
  std::latch ended(kRounds);
  for (int round = 0; round < kRounds; ++round) {
    fetcher.post([&] {
      append(*body, 100);
      transfer->publish_body();
    });
    other.post([&] {
      auto reader = std::make_unique<Reader>(other, transfer, ended);
      (void)transfer->join(*reader);
      reader->on_transfer();
      // Gone with wake-ups for it under way; the next one may get its memory.
      if (reader->wrong) FAIL_CHECK("wrong bytes");
    });
  }
  ended.wait();
  f.on(fetcher, [&] { body->complete(); });
  CHECK_FALSE(transfer->has_readers());
}

TEST_CASE("a key's transfer is found until it is removed", "[server][transfer]") {
  Fixture f(1);
  Worker& worker = *f.workers[0];
  Inflight inflight;
  const filter::Hash128 hash{1, 2};
  const auto first = std::make_shared<Transfer>(worker, hash, key_of("key"));
  const auto second = std::make_shared<Transfer>(worker, hash, key_of("key"));
  const auto collides = std::make_shared<Transfer>(worker, hash, key_of("other key"));
  std::latch ended(2);
  Reader a(worker, first, ended);
  Reader b(worker, collides, ended);
  f.on(worker, [&] {
    CHECK(inflight.join(hash, "key", a).transfer == nullptr);
    CHECK(inflight.join_or_enter(hash, "key", a, first).joined == JoinOutcome::kNo);
    CHECK(inflight.join_or_enter(hash, "other key", b, collides).transfer == collides);
    const auto claim = inflight.join_or_enter(hash, "key", a, second);
    CHECK(claim.transfer == first);
    CHECK(claim.joined == JoinOutcome::kBeforeHead);
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

TEST_CASE("what is uncacheable is remembered for its time", "[server][transfer]") {
  Inflight inflight;
  const filter::Hash128 hash{1, 2};
  const MonotonicTime now{std::chrono::seconds(100)};
  CHECK_FALSE(inflight.is_uncacheable(hash, now));
  inflight.remember_uncacheable(hash, now + std::chrono::seconds(5));
  CHECK(inflight.is_uncacheable(hash, now));
  CHECK_FALSE(inflight.is_uncacheable(filter::Hash128{2, 1}, now));
  CHECK_FALSE(inflight.is_uncacheable(hash, now + std::chrono::seconds(5)));
  inflight.forget_uncacheable(hash);
  CHECK_FALSE(inflight.is_uncacheable(hash, now));
}

}  // namespace
}  // namespace encore::server

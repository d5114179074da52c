#include "proxy/transfer/inflight.h"

#include <array>
#include <cstdint>
#include <latch>
#include <memory>
#include <string>
#include <utility>

#include "tests/catch.h"
#include "tests/transfer/reading.h"

namespace encore::server {
namespace {

// A table, and two transfers that may stand in it, of one key.
struct Table {
  std::shared_ptr<Transfer> make(std::string key) const {
    return std::make_shared<Transfer>(worker, hash, key_of(std::move(key)));
  }

  Fixture f{1};
  TransferHome& worker = *f.homes[0];
  Inflight inflight;
  filter::Hash128 hash{1, 2};
  std::shared_ptr<Transfer> first = make("key");
  std::shared_ptr<Transfer> second = make("key");
  std::latch ended{2};
  Reader reader{worker, first, ended};
  http::VariantKeys own{kNoFields, kVary};
  Inflight::Wanted wanted{.hash = hash, .key = "key", .variants = own, .reader = reader};
};

TEST_CASE("a key's transfer is found until it is removed", "[transfer][inflight]") {
  Table table;
  Inflight& inflight = table.inflight;
  const auto& first = table.first;
  const auto& second = table.second;
  const auto collides = table.make("other key");
  Reader other(table.worker, collides, table.ended);
  table.f.on(table.worker, [&] {
    CHECK(inflight.join_or_enter(table.wanted, nullptr).transfer == nullptr);
    CHECK(inflight.join_or_enter(table.wanted, first).joined == JoinOutcome::kNo);
    CHECK(inflight
              .join_or_enter(
                  {.hash = table.hash, .key = "other key", .variants = table.own, .reader = other},
                  collides)
              .transfer == collides);
    const auto claim = inflight.join_or_enter(table.wanted, second);
    CHECK(claim.transfer == first);
    CHECK(claim.joined == JoinOutcome::kBeforeHead);
    table.wanted.settings = 1;
    CHECK(inflight.join_or_enter(table.wanted, nullptr).transfer == nullptr);
    CHECK_FALSE(inflight.enter_if_absent(second));
    inflight.remove(*second);  // it is not there, and takes no other with it
    CHECK_FALSE(inflight.enter_if_absent(second));
    inflight.remove(*first);
    inflight.remove(*collides);
    CHECK(inflight.enter_if_absent(second));
    table.reader.leave();
    other.leave();
  });
}

TEST_CASE("who finds no transfer is told that its response was stored a moment ago",
          "[transfer][inflight]") {
  Table table;
  Inflight& inflight = table.inflight;
  const auto& second = table.second;
  table.f.on(table.worker, [&] {
    Inflight::Wanted& wanted = table.wanted;
    wanted.checks_recent_stores = true;
    CHECK(inflight.join_or_enter(wanted, table.first).transfer == table.first);
    inflight.remove_stored(*table.first);
    CHECK(inflight.join_or_enter(wanted, second).joined == JoinOutcome::kStoredMeanwhile);
    CHECK(inflight.join_or_enter(wanted, nullptr).joined == JoinOutcome::kStoredMeanwhile);
    wanted.checks_recent_stores = false;
    CHECK(inflight.join_or_enter(wanted, second).transfer == second);
    // As long as it is in progress, it is joined first.
    wanted.checks_recent_stores = true;
    CHECK(inflight.join_or_enter(wanted, nullptr).joined == JoinOutcome::kBeforeHead);
    second->leave(table.reader);
    inflight.remove(*second);
    CHECK(inflight.join_or_enter(wanted, nullptr).joined == JoinOutcome::kStoredMeanwhile);
    // Others take its place.
    for (std::uint64_t i = 0; i < 16; ++i) {
      const auto other =
          std::make_shared<Transfer>(table.worker, filter::Hash128{i + 5, 2}, key_of("other"));
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

TEST_CASE("nobody waits for another variant than the one he wants", "[transfer][inflight]") {
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
    // It knows the fields by which the other differs, so that only its own requests join it.
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
TEST_CASE("what is not shared is remembered for its time, and why", "[transfer][inflight]") {
  using enum Inflight::Unshared;
  Inflight inflight;
  const filter::Hash128 hash{1, 2};
  const MonotonicTime now{std::chrono::seconds(100)};
  const auto credentials = GENERATE(values<std::uint64_t>({0, 7}));
  CHECK(inflight.unshared(hash, credentials, now) == kNo);
  for (const auto why : {kValidated, kAnswer, kUncacheable}) {
    inflight.remember_unshared(hash, credentials, why, now + std::chrono::seconds(5));
    CHECK(inflight.unshared(hash, credentials, now) == why);
    CHECK(inflight.unshared(filter::Hash128{2, 1}, credentials, now) == kNo);
    CHECK(inflight.unshared(hash, credentials, now + std::chrono::seconds(5)) == kNo);
    CHECK(inflight.was_unshared_recently(hash, now));
    CHECK_FALSE(inflight.was_unshared_recently(hash, now + std::chrono::seconds(5)));
  }
  inflight.forget_unshared(hash, credentials);
  CHECK(inflight.unshared(hash, credentials, now) == kNo);
  CHECK_FALSE(inflight.was_unshared_recently(hash, now));
}

TEST_CASE("what is not shared with one client is remembered of no other", "[transfer][inflight]") {
  using enum Inflight::Unshared;
  Inflight inflight;
  const filter::Hash128 hash{1, 2};
  const MonotonicTime now{std::chrono::seconds(100)};
  const MonotonicTime until = now + std::chrono::seconds(5);
  inflight.remember_unshared(hash, 7, kUncacheable, until);
  CHECK(inflight.unshared(hash, 0, now) == kNo);
  CHECK(inflight.unshared(hash, 8, now) == kNo);
  // A response that is shared with others leaves those apart who are not known to share anything.
  inflight.forget_unshared(hash, 0);
  CHECK(inflight.unshared(hash, 7, now) == kUncacheable);
  CHECK(inflight.was_unshared_recently(hash, now));
  inflight.forget_unshared(hash, 7);
  CHECK_FALSE(inflight.was_unshared_recently(hash, now));
}

TEST_CASE("a whole that is too large for a range is too large for everybody's",
          "[transfer][inflight]") {
  using enum Inflight::Unshared;
  Inflight inflight;
  const filter::Hash128 hash{1, 2};
  const MonotonicTime now{std::chrono::seconds(100)};
  inflight.keep_ranges_alone(hash, now + std::chrono::seconds(5));
  CHECK(inflight.are_ranges_alone(hash, now));
  CHECK_FALSE(inflight.are_ranges_alone(hash, now + std::chrono::seconds(5)));
  CHECK(inflight.unshared(hash, 0, now) == kNo);
  CHECK_FALSE(inflight.was_unshared_recently(hash, now));
  inflight.forget_unshared(hash, 0);
  CHECK_FALSE(inflight.are_ranges_alone(hash, now));
}

TEST_CASE("who is apart waits for its like, and for others only behind their heads",
          "[transfer][inflight]") {
  Table table;
  const auto another = std::make_shared<Transfer>(table.worker, table.hash, key_of("key"),
                                                  Transfer::Requester{.credentials = 7});
  table.f.on(table.worker, [&] {
    using enum Inflight::JoinCandidates;
    table.inflight.enter(another);
    const auto joined = [&](Inflight::JoinCandidates among) {
      table.wanted.among = among;
      return table.inflight.join_or_enter(table.wanted, nullptr).transfer != nullptr;
    };
    CHECK_FALSE(joined(kAlikeBeforeHead));
    CHECK_FALSE(joined(kAlike));
    CHECK(joined(kAll));
    another->leave(table.reader);
    table.wanted.credentials = 7;
    CHECK(joined(kAlike));
    another->leave(table.reader);
    table.wanted.credentials = 0;
    const store::BodyRef body = table.f.make_body();
    another->publish_response(std::make_shared<SharedResponse>(), body, Joinable::kToRead);
    CHECK_FALSE(joined(kAlike));
    CHECK(joined(kAlikeBeforeHead));
    another->leave(table.reader);
    table.inflight.remove(*another);
    table.reader.leave();
  });
}

}  // namespace
}  // namespace encore::server

// A transfer and the table of transfers, against plain models of their rules.
#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "proxy/transfer/inflight.h"
#include "proxy/transfer/transfer.h"
#include "tests/catch.h"
#include "tests/transfer/reading.h"

namespace encore::server {
namespace {

// Counts its calls; the first of them may make another reader leave.
struct Called final : public TransferReader {
  Called(TransferHome& home, Transfer& of) : TransferReader(home), transfer(of) {}
  ~Called() override { transfer.leave(*this); }
  void on_transfer() override {
    ++calls;
    if (leaves_with != nullptr) transfer.leave(*std::exchange(leaves_with, nullptr));
  }
  void on_interim(std::string_view text) override { interim += text; }
  void on_upload_ready() override { ++uploads; }

  Transfer& transfer;
  Called* leaves_with = nullptr;
  int calls = 0;
  int uploads = 0;
  std::string interim;
};

// As the joins of transfer.h are described.
struct JoinFacts {
  bool has_head = false;
  Joinable joinable = Joinable::kToRead;
  bool is_counted = false;
  JoinScope scope = JoinScope::kAny;
  enum class Variant : std::uint8_t { kNone, kSame, kOtherForm, kUnknown } variant = Variant::kNone;
};
JoinOutcome outcome_of(const JoinFacts& facts) {
  using Variant = JoinFacts::Variant;
  if (facts.joinable == Joinable::kNo) return JoinOutcome::kNo;
  const bool waits = facts.joinable == Joinable::kUntilStored;
  if (facts.scope == JoinScope::kBeingStored && !waits) return JoinOutcome::kNo;
  if (facts.variant == Variant::kUnknown) return JoinOutcome::kUnknownKey;
  if (facts.variant == Variant::kOtherForm) return JoinOutcome::kNo;
  if (waits) return JoinOutcome::kUntilStored;
  if (facts.has_head || facts.is_counted) return JoinOutcome::kBehindHead;
  return JoinOutcome::kBeforeHead;
}

TEST_CASE("a join comes to what the state of its transfer says", "[transfer]") {
  using Variant = JoinFacts::Variant;
  Fixture f(1);
  TransferHome& home = *f.homes[0];
  http::RequestHead head;
  http::ParseError error;
  const std::string text = "GET / HTTP/1.1\r\nHost: h\r\nX-Lang: de\r\n\r\n";
  REQUIRE(http::parse_request(text, {}, head, error) == http::ParseStatus::kComplete);
  const store::BodyRef body = f.make_body();
  f.on(home, [&] {
    for (const bool has_head : {false, true}) {
      for (const Joinable joinable : {Joinable::kNo, Joinable::kToRead, Joinable::kUntilStored}) {
        for (const bool is_counted : {false, true}) {
          for (const JoinScope scope : {JoinScope::kAny, JoinScope::kBeingStored}) {
            for (const Variant variant :
                 {Variant::kNone, Variant::kSame, Variant::kOtherForm, Variant::kUnknown}) {
              // Before the head one waits for what may be read alone.
              if (!has_head && joinable == Joinable::kUntilStored) continue;
              const JoinFacts facts{has_head, joinable, is_counted, scope, variant};
              http::VariantKeys own(head.fields, kVary);
              std::string key;
              if (variant != Variant::kUnknown) key = own.make("x-lang");
              if (variant == Variant::kOtherForm) key += "?";
              const auto transfer =
                  std::make_shared<Transfer>(home, filter::Hash128{}, key_of("key"));
              Called first(home, *transfer);
              Called reader(home, *transfer);
              transfer->add_first_reader(first);
              transfer->mark_opened(first);
              CHECK_FALSE(transfer->is_expected());
              if (variant != Variant::kNone) {
                transfer->expect({.names = "x-lang", .key = key});
                CHECK(transfer->is_expected());
              }
              if (is_counted) CHECK(transfer->count_joined() == 0);
              if (has_head) {
                auto response = std::make_shared<SharedResponse>();
                if (variant != Variant::kNone) {
                  response->names = "x-lang";
                  response->variant_key = key;
                  // The expected variant counts no more.
                  transfer->expect({.names = "x-lang", .key = "nobody's"});
                }
                transfer->publish_response(response, body, joinable);
                CHECK(transfer->is_awaitable() == (joinable == Joinable::kUntilStored));
              } else if (joinable == Joinable::kNo) {
                transfer->give_up_head();
              }
              std::string names;
              const JoinOutcome joined = transfer->join(reader, own, scope, names);
              CAPTURE(has_head, static_cast<int>(joinable), is_counted, static_cast<int>(scope),
                      static_cast<int>(variant));
              CHECK(joined == outcome_of(facts));
              if (joined == JoinOutcome::kUnknownKey) CHECK(names == "x-lang");
              const bool is_in = joined != JoinOutcome::kNo && joined != JoinOutcome::kUnknownKey;
              CHECK(transfer->is_read_by_several() == is_in);
              CHECK(transfer->count_joined() == (joined == JoinOutcome::kBeforeHead ? 1 : 0));
              // A reader that waits for the end delays nobody.
              transfer->advance(first, 5);
              CHECK(transfer->slowest_position(9) ==
                    (is_in && joined != JoinOutcome::kUntilStored ? 0 : 5));
              CHECK(transfer->all_opened() == (!is_in || joined == JoinOutcome::kUntilStored));
            }
          }
        }
      }
    }
  });
}

TEST_CASE("readers that come and go in any order are those that a plain list has", "[transfer]") {
  Fixture f(1);
  TransferHome& home = *f.homes[0];
  f.on(home, [&] {
    std::mt19937 random(7);
    const auto transfer = std::make_shared<Transfer>(home, filter::Hash128{}, key_of("key"));
    struct Model {
      std::unique_ptr<Called> reader;
      std::uint64_t position = 0;
      bool opened = false;
      bool waits = false;
      bool over = false;
      int calls = 0;
    };
    std::vector<Model> readers;
    const store::BodyRef body = f.make_body();
    transfer->publish_response(some_response(""), body, Joinable::kToRead);
    for (int step = 0; step < 3000; ++step) {
      const auto pick = readers.empty() ? 0 : random() % readers.size();
      switch (random() % 7) {
        case 0:
        case 1:
          if (readers.size() >= 5) break;
          readers.push_back({.reader = std::make_unique<Called>(home, *transfer)});
          REQUIRE(join(*transfer, *readers.back().reader) == JoinOutcome::kBehindHead);
          break;
        case 2:
          if (!readers.empty()) readers.erase(readers.begin() + static_cast<std::ptrdiff_t>(pick));
          break;
        case 3:
          if (readers.empty() || readers[pick].waits) break;
          readers[pick].position += random() % 10;
          transfer->advance(*readers[pick].reader, readers[pick].position);
          break;
        case 4:
          if (readers.empty()) break;
          readers[pick].opened = true;
          transfer->mark_opened(*readers[pick].reader);
          break;
        case 5:
          if (readers.empty()) break;
          if (random() % 3 == 0) {
            readers[pick].waits = readers[pick].opened = true;
            transfer->mark_waiting(*readers[pick].reader);
          } else {
            readers[pick].over = random() % 2 == 0;
            readers[pick].reader->set_over_share(readers[pick].over);
          }
          break;
        default:
          transfer->publish_body();
          for (Model& each : readers) ++each.calls;
          break;
      }
      std::uint64_t slowest = 1'000'000;
      std::size_t reading = 0;
      bool is_over = false;
      for (const Model& each : readers) {
        if (each.waits) continue;
        slowest = std::min(slowest, each.position);
        ++reading;
        is_over = each.over;
      }
      REQUIRE(transfer->has_readers() == !readers.empty());
      REQUIRE(transfer->is_read_by_several() == (readers.size() > 1));
      REQUIRE(transfer->slowest_position(1'000'000) == slowest);
      REQUIRE(transfer->all_opened() ==
              std::ranges::all_of(readers, [](const Model& each) { return each.opened; }));
      REQUIRE(transfer->is_over_share() == (reading == 1 && is_over));
      for (const Model& each : readers) REQUIRE(each.reader->calls == each.calls);
    }
    readers.clear();
    CHECK(transfer->close_if_unread());
    Called late(home, *transfer);
    CHECK(join(*transfer, late) == JoinOutcome::kNo);
  });
}

TEST_CASE("a reader that has left joins again as if it were new", "[transfer]") {
  using std::chrono::milliseconds;
  Fixture f(1);
  TransferHome& home = *f.homes[0];
  f.on(home, [&] {
    const auto transfer = std::make_shared<Transfer>(home, filter::Hash128{}, key_of("key"));
    const store::BodyRef body = f.make_body();
    transfer->publish_response(some_response(""), body, Joinable::kToRead);
    Called other(home, *transfer);
    Called reader(home, *transfer);
    REQUIRE(join(*transfer, other) == JoinOutcome::kBehindHead);
    transfer->mark_opened(other);
    transfer->advance(other, 1000);
    MonotonicTime now{std::chrono::hours(1)};
    const auto blame = [&](milliseconds elapsed) {
      now += elapsed;
      return transfer->blame_slowest({.written = 1000, .elapsed = elapsed, .now = now});
    };
    for (const bool was_cut : {false, true, false}) {
      CAPTURE(was_cut);
      REQUIRE(join(*transfer, reader) == JoinOutcome::kBehindHead);
      CHECK_FALSE(transfer->all_opened());
      CHECK_FALSE(reader.is_cut());
      CHECK_FALSE(reader.is_busy());
      CHECK(reader.take_question() == TransferReader::Question::kNone);
      CHECK(transfer->slowest_position(1000) == 0);
      transfer->mark_opened(reader);
      // Blame of its earlier life does not count.
      CHECK_FALSE(blame(milliseconds(1900)));
      CHECK(transfer->slowest_position(1000) == 0);
      if (was_cut) {
        CHECK(blame(milliseconds(1900)));
        CHECK(reader.is_cut());
      }
      CHECK(transfer->probe_blocking_readers(1000, Transfer::ReaderProbe::kVerdict) ==
            Transfer::Others::kWait);
      transfer->advance(reader, 500);
      reader.set_over_share(true);
      reader.set_busy(true);
      transfer->leave(reader);
      // It is not called for what it was asked before.
      (void)other.take_question();
    }
    REQUIRE(join(*transfer, reader) == JoinOutcome::kBehindHead);
    transfer->leave(other);
    CHECK_FALSE(transfer->is_over_share());
    CHECK_FALSE(transfer->is_read_by_several());
    transfer->leave(reader);
    transfer->leave(reader);  // once is enough
    CHECK_FALSE(transfer->has_readers());
  });
}

TEST_CASE("who has asked alone hears of interim responses and of its content; all hear of the rest",
          "[transfer]") {
  Fixture f(1);
  TransferHome& home = *f.homes[0];
  f.on(home, [&] {
    const auto transfer = std::make_shared<Transfer>(home, filter::Hash128{}, key_of("key"));
    Called first(home, *transfer);
    Called second(home, *transfer);
    transfer->publish_interim("too early");
    transfer->publish_upload_ready();
    transfer->add_first_reader(first);
    REQUIRE(join(*transfer, second) == JoinOutcome::kBeforeHead);
    transfer->publish_interim("hint");
    transfer->publish_upload_ready();
    CHECK(first.interim == "hint");
    CHECK(first.uploads == 1);
    CHECK(second.interim.empty());
    CHECK(second.uploads == 0);
    CHECK(first.calls == 0);
    transfer->publish_body();
    CHECK(first.calls == 1);
    CHECK(second.calls == 1);
    // One that leaves for another is not called.
    first.leaves_with = &second;
    transfer->publish_body();
    CHECK(first.calls == 2);
    CHECK(second.calls == 1);
    transfer->leave(first);
    transfer->publish_interim("too late");
    transfer->publish_upload_ready();
    CHECK(first.interim == "hint");
    CHECK(first.uploads == 1);
    CHECK_FALSE(transfer->has_readers());
  });
}

TEST_CASE("each end of a transfer is its phase, and ends joining", "[transfer]") {
  Fixture f(1);
  TransferHome& home = *f.homes[0];
  f.on(home, [&] {
    using Publish = std::function<void(Transfer&)>;
    const std::vector<std::pair<TransferPhase, Publish>> ends = {
        {TransferPhase::kFailed, [](Transfer& of) { of.publish_failure({.status = 504}); }},
        {TransferPhase::kValidated, [](Transfer& of) { of.publish_validated({.status = 304}); }},
        {TransferPhase::kSwitched, [](Transfer& of) { of.publish_switched({.head = "h"}); }}};
    for (const auto& [phase, publish] : ends) {
      const auto transfer = std::make_shared<Transfer>(home, filter::Hash128{}, key_of("key"));
      Called first(home, *transfer);
      Called late(home, *transfer);
      transfer->add_first_reader(first);
      CHECK(transfer->phase() == TransferPhase::kWaiting);
      publish(*transfer);
      CHECK(transfer->phase() == phase);
      CHECK(first.calls == 1);
      CHECK(join(*transfer, late) == JoinOutcome::kNo);
      if (phase == TransferPhase::kFailed) CHECK(transfer->failure().status == 504);
      if (phase == TransferPhase::kValidated) CHECK(transfer->validated().status == 304);
      if (phase == TransferPhase::kSwitched) CHECK(transfer->take_switched().head == "h");
    }
  });
}

TEST_CASE("the table of transfers agrees with a plain list", "[transfer][inflight]") {
  Fixture f(1);
  TransferHome& home = *f.homes[0];
  f.on(home, [&] {
    std::mt19937 random(11);
    Inflight inflight;
    http::VariantKeys own(kNoFields, kVary);
    struct Listed {
      std::shared_ptr<Transfer> transfer;
      std::uint64_t place = 0;
      std::string key;
      bool is_found = true;  // not invalidated
    };
    std::vector<Listed> listed;
    const auto hash_at = [](std::uint64_t place) { return filter::Hash128{place, place * 3}; };
    for (int step = 0; step < 5000; ++step) {
      // Two keys at each hash.
      const std::uint64_t place = random() % 4 + 1;
      const std::string key = random() % 2 == 0 ? "one" : "two";
      const auto hash = hash_at(place);
      const auto is_here = [&](const Listed& each) {
        return each.is_found && each.place == place && each.key == key;
      };
      switch (random() % 6) {
        case 0: {
          const auto made = std::make_shared<Transfer>(home, hash, key_of(key));
          inflight.enter(made);
          listed.push_back({made, place, key});
          break;
        }
        case 1: {
          const auto made = std::make_shared<Transfer>(home, hash, key_of(key));
          const bool has_any = std::ranges::any_of(
              listed, [&](const Listed& each) { return each.is_found && each.place == place; });
          REQUIRE(inflight.enter_if_absent(made) == !has_any);
          REQUIRE(made->is_listed() == !has_any);
          if (!has_any) listed.push_back({made, place, key});
          break;
        }
        case 2:
        case 3: {
          if (listed.empty()) break;
          const auto at = listed.begin() + static_cast<std::ptrdiff_t>(random() % listed.size());
          inflight.remove(*at->transfer);
          REQUIRE_FALSE(at->transfer->is_listed());
          REQUIRE(at->transfer.use_count() == 1);
          listed.erase(at);
          break;
        }
        case 4: {
          const std::uint64_t before = inflight.invalidations().count();
          if (random() % 20 == 0) {
            inflight.invalidate_all();
            for (Listed& each : listed) each.is_found = false;
          } else {
            inflight.invalidate(hash, key);
            for (Listed& each : listed) each.is_found = each.is_found && !is_here(each);
          }
          REQUIRE(inflight.invalidations().has_since(hash, before));
          REQUIRE_FALSE(inflight.invalidations().has_since(hash, inflight.invalidations().count()));
          break;
        }
        default: {
          const auto unread = std::make_shared<Transfer>(home, hash, key_of(key));
          Called reader(home, *unread);
          const auto claim = inflight.join_or_enter(
              {.hash = hash, .key = key, .variants = own, .reader = reader}, nullptr);
          const bool is_there = std::ranges::any_of(listed, is_here);
          REQUIRE((claim.transfer != nullptr) == is_there);
          if (!is_there) break;
          REQUIRE(std::ranges::any_of(listed, [&](const Listed& each) {
            return is_here(each) && each.transfer == claim.transfer;
          }));
          claim.transfer->leave(reader);
          break;
        }
      }
      for (const Listed& each : listed) {
        REQUIRE(each.transfer.use_count() == (each.is_found ? 2 : 1));
      }
    }
    for (const Listed& each : listed) inflight.remove(*each.transfer);
  });
}

TEST_CASE("who may wait for a transfer follows from both requests", "[transfer][inflight]") {
  Fixture f(1);
  TransferHome& home = *f.homes[0];
  f.on(home, [&] {
    using JoinCandidates = Inflight::JoinCandidates;
    const net::Address here = *net::Address::parse_ip("192.0.2.1", 1);
    const net::Address near = *net::Address::parse_ip("192.0.2.1", 9);
    const net::Address far = *net::Address::parse_ip("192.0.2.2", 1);
    const filter::Hash128 hash{1, 2};
    http::VariantKeys own(kNoFields, kVary);
    const store::BodyRef body = f.make_body();
    for (unsigned facts = 0; facts < 16; ++facts) {
      const bool same_settings = (facts & 1U) != 0;
      const bool same_credentials = (facts & 2U) != 0;
      const bool is_held_back = (facts & 4U) != 0;
      const bool has_head = (facts & 8U) != 0;
      for (const net::Address* client : {static_cast<const net::Address*>(nullptr), &near, &far}) {
        for (const JoinCandidates among :
             {JoinCandidates::kAll, JoinCandidates::kAlikeBeforeHead, JoinCandidates::kAlike}) {
          Inflight inflight;
          const auto transfer = std::make_shared<Transfer>(
              home, hash, key_of("key"),
              Transfer::Requester{.settings = 3, .credentials = 5, .client = here});
          transfer->set_motion(is_held_back ? Transfer::Motion::kHeldBack
                                            : Transfer::Motion::kMoving);
          if (has_head) transfer->publish_response(some_response(""), body, Joinable::kToRead);
          inflight.enter(transfer);
          Called reader(home, *transfer);
          const auto claim = inflight.join_or_enter({.hash = hash,
                                                     .key = "key",
                                                     .variants = own,
                                                     .reader = reader,
                                                     .settings = same_settings ? 3U : 4U,
                                                     .credentials = same_credentials ? 5U : 6U,
                                                     .client = client,
                                                     .among = among},
                                                    nullptr);
          const bool is_alike = same_credentials || among == JoinCandidates::kAll ||
                                (among == JoinCandidates::kAlikeBeforeHead && has_head);
          const bool may = same_settings && is_alike && !(is_held_back && client == &far);
          CAPTURE(facts, static_cast<int>(among), client == &far);
          CHECK((claim.transfer == transfer) == may);
          inflight.remove(*transfer);
        }
      }
    }
  });
}

}  // namespace
}  // namespace encore::server

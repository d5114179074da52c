// Bodies in parts on a real disk, read for one reader: every byte is the one that was written, and
// little of it is in memory at a time.
#include "proxy/exchange/disk_body.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "cache/disk_parts.h"
#include "tests/catch.h"
#include "tests/exchange/large_on_disk.h"

namespace encore::server {
namespace {

// Reads what is there, at most so much at a time, and tells how far it is.
struct BodyReading {
  BodyReading(LargeOnDisk& on, const DiskBody::Wanted& wanted, std::size_t step_bytes)
      : step(step_bytes) {
    disk_body = on.loads->open(wanted, [this] { ++calls; });
    REQUIRE(disk_body != nullptr);
    body = disk_body->body();
    cursor = body->open(wanted.begin);
    REQUIRE(cursor.has_value());
    body->stop_retaining();
  }
  void read() {
    std::array<iovec, 4> room;
    const auto peeked = cursor->peek(room, step);
    for (std::size_t i = 0; i < peeked.parts; ++i) {
      text.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
    }
    cursor->advance(peeked.bytes);
    disk_body->on_reader({.position = cursor->position(), .may_read_ahead = true});
    held_max = std::max(held_max, body->held_bytes());
  }
  bool is_growing() const { return body->state() == store::BodyState::kGrowing; }

  std::size_t step;
  int calls = 0;
  std::unique_ptr<DiskBody> disk_body;
  store::BodyRef body;
  std::optional<store::Body::Cursor> cursor;
  std::string text;
  std::uint64_t held_max = 0;
};

TEST_CASE("any range of a body on disk is what was written, and little is in memory",
          "[exchange][disk]") {
  std::mt19937_64 random(GENERATE(1U, 2U, 3U));
  LargeOnDisk on;
  const std::array<std::uint64_t, 4> sizes = {cache::kPartBytes, cache::kPartBytes + 1,
                                              2 * cache::kPartBytes - 1,
                                              9'000'000 + random() % 70'000};
  const std::string text = random_bytes(random, sizes[random() % sizes.size()]);
  const LargeBody large = on.put_body(text);
  for (int turn = 0; turn < 12; ++turn) {
    std::uint64_t begin = turn == 0 ? 0 : random() % text.size();
    std::uint64_t end = turn == 0 ? text.size() : 1 + random() % text.size();
    if (begin >= end) std::swap(begin, end);
    if (begin == end) ++end;
    end = std::min<std::uint64_t>(end, text.size());
    if (begin == end) continue;
    CAPTURE(text.size(), begin, end);
    BodyReading reading(on, {.key = kKey, .body = large, .begin = begin, .end = end},
                        1 + random() % 3'000'000);
    while (reading.is_growing() || reading.cursor->position() < reading.body->size()) {
      reading.read();
      on.run();
    }
    REQUIRE(reading.body->state() == store::BodyState::kComplete);
    REQUIRE(reading.text.size() >= end - begin);
    // Whole blocks of the disk, but for the last.
    const std::uint64_t blocks = (end + disk::kBlockBytes - 1) / disk::kBlockBytes;
    CHECK(reading.body->size() == std::min<std::uint64_t>(text.size(), blocks * disk::kBlockBytes));
    const auto differ = std::mismatch(text.begin() + static_cast<long>(begin),
                                      text.begin() + static_cast<long>(end), reading.text.begin());
    CHECK(differ.first - text.begin() == static_cast<long>(end));
    CHECK(reading.held_max <= 4 * DiskBody::kPieceBytes);
    CHECK(reading.calls > 0);
  }
}

TEST_CASE("who reads slowly is not read ahead of", "[exchange][disk]") {
  std::mt19937_64 random(4);
  LargeOnDisk on;
  const std::string text = random_bytes(random, 3 * cache::kPartBytes);
  BodyReading reading(on, {.key = kKey, .body = on.put_body(text), .begin = 0, .end = text.size()},
                      1000);
  for (int i = 0; i < 100; ++i) {
    reading.read();
    on.run();
  }
  CHECK(reading.body->size() <= 100'000 + 2 * DiskBody::kPieceBytes);
  CHECK(reading.is_growing());
}

TEST_CASE("the first piece is small, for a reader that waits, and the others are not",
          "[exchange][disk]") {
  std::mt19937_64 random(6);
  LargeOnDisk on;
  const std::string text = random_bytes(random, 2 * cache::kPartBytes);
  BodyReading reading(on, {.key = kKey, .body = on.put_body(text), .begin = 0, .end = text.size()},
                      text.size());
  for (int turn = 0; turn < 100 && reading.calls == 0; ++turn) on.run();
  CHECK(reading.body->size() == DiskBody::kFirstPieceBytes);
  reading.read();
  for (int turn = 0; turn < 100 && reading.calls == 1; ++turn) on.run();
  CHECK(reading.body->size() == DiskBody::kFirstPieceBytes + DiskBody::kPieceBytes);
}

TEST_CASE("a range takes the memory of its blocks, and no more", "[exchange][disk]") {
  std::mt19937_64 random(7);
  LargeOnDisk on;
  const std::string text = random_bytes(random, 2 * cache::kPartBytes);
  const LargeBody large = on.put_body(text);
  for (const std::uint64_t begin : {std::uint64_t{0}, 3 * disk::kBlockBytes + 17}) {
    for (const std::uint64_t blocks : {1U, 2U, 3U}) {
      const std::uint64_t end = begin + (blocks - 1) * disk::kBlockBytes + 1;
      CAPTURE(begin, end);
      const auto body =
          DiskBody::make_body(*on.store, {.key = kKey, .body = large, .begin = begin, .end = end});
      REQUIRE(body.has_value());
      const std::uint64_t before = on.store->stats().live_bytes;
      for (std::uint64_t i = 0; i < blocks; ++i) {
        const std::string block(disk::kBlockBytes, 'b');
        REQUIRE((*body)->append(std::as_bytes(std::span(block))) == block.size());
      }
      CHECK(on.store->stats().live_bytes - before <= (blocks + 1) * disk::kBlockBytes);
    }
  }
}

TEST_CASE("a body ends early where a part has gone, or is damaged", "[exchange][disk]") {
  std::mt19937_64 random(5);
  LargeOnDisk on;
  const std::string text = random_bytes(random, 3 * cache::kPartBytes);
  const bool is_damaged = GENERATE(false, true);
  const LargeBody large = on.put_body(text, is_damaged ? UINT64_MAX : 1);
  if (is_damaged) {
    const cache::DiskPlace& place = on.places[1];
    std::fstream file(on.directory / "disk", std::ios::in | std::ios::out | std::ios::binary);
    std::string all(std::filesystem::file_size(on.directory / "disk"), '\0');
    file.read(all.data(), static_cast<std::streamsize>(all.size()));
    const std::size_t at = all.find(text.substr(cache::kPartBytes + 2'000'000, 100));
    REQUIRE(at != std::string::npos);
    REQUIRE(place.bytes != 0);
    file.clear();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(all[at] ^ 1));
  }
  BodyReading reading(on, {.key = kKey, .body = large, .begin = 0, .end = text.size()}, 1U << 20U);
  for (int i = 0; i < 100 && reading.is_growing(); ++i) {
    reading.read();
    on.run();
  }
  const int calls = reading.calls;
  on.run();
  CHECK(reading.body->state() == store::BodyState::kAborted);
  CHECK(reading.calls >= calls);
  CHECK(reading.calls > 0);
  while (!reading.cursor->at_end() && reading.cursor->position() < reading.body->size()) {
    reading.read();
  }
  CHECK(text.starts_with(reading.text));
  CHECK(reading.text.size() >= cache::kPartBytes);
  CHECK(reading.text.size() < 2 * cache::kPartBytes);
}

TEST_CASE("a record of another body, part or length is no part of a body", "[exchange][disk]") {
  std::mt19937_64 random(8);
  LargeOnDisk on;
  const std::string text = random_bytes(random, 2 * cache::kPartBytes);
  const LargeBody large = on.put_body(text, 0);
  OtherRecord other;
  switch (GENERATE(range(0, 4))) {
    case 0:
      other.body_more = 1;
      break;
    case 1:
      other.number_more = 1;
      break;
    case 2:
      other.bytes_less = 1;
      break;
    default:  // it is the one
      break;
  }
  const bool is_other = other.body_more + other.number_more + other.bytes_less != 0;
  CAPTURE(other.body_more, other.number_more, other.bytes_less);
  auto made = on.store->make_body({.length = text.size()});
  REQUIRE(made.has_value());
  REQUIRE((*made)->append(std::as_bytes(std::span(text))) == text.size());
  (*made)->complete();
  auto cursor = (*made)->open(0);
  REQUIRE(cursor.has_value());
  on.put_part(large, 0, cursor->copy(), cache::kPartBytes, other);
  on.disks->tick();
  BodyReading reading(on, {.key = kKey, .body = large, .begin = 0, .end = 1000}, 1000);
  for (int i = 0; i < 100 && reading.is_growing(); ++i) on.run();
  on.run();
  CHECK(reading.body->state() ==
        (is_other ? store::BodyState::kAborted : store::BodyState::kComplete));
  CHECK((reading.body->size() == 0) == is_other);
  CHECK(reading.calls == 1);
}

TEST_CASE("a body whose disk finds no memory waits for it, and calls nobody meanwhile",
          "[exchange][disk]") {
  std::mt19937_64 random(9);
  LargeOnDisk on;
  const std::string text = random_bytes(random, cache::kPartBytes);
  const LargeBody large = on.put_body(text);
  // All that the store has is taken.
  std::vector<store::BodyRef> hoard;
  const std::string block(1U << 20U, 'h');
  for (std::size_t taken = block.size(); taken == block.size();) {
    auto made = on.store->make_body({.length = {}, .use = store::BodyUse::kStored});
    if (!made) break;
    taken = (*made)->append(std::as_bytes(std::span(block)));
    hoard.push_back(std::move(*made));
  }
  auto disk_body = std::optional<BodyReading>();
  disk_body.emplace(on,
                    DiskBody::Wanted{.key = kKey, .body = large, .begin = 0, .end = text.size()},
                    text.size());
  for (int i = 0; i < 20; ++i) on.run();
  const bool has_none = disk_body->body->size() == 0;
  CHECK(has_none);
  CHECK(disk_body->calls == 0);
  CHECK(disk_body->is_growing());
  hoard.clear();
  const MonotonicTime patience = monotonic_now() + std::chrono::seconds(60);
  while (disk_body->is_growing() && monotonic_now() < patience) {
    disk_body->read();
    on.run();
  }
  CHECK(disk_body->body->state() == store::BodyState::kComplete);
}

TEST_CASE("who leaves while it is read is not called", "[exchange][disk]") {
  std::mt19937_64 random(6);
  LargeOnDisk on;
  const std::string text = random_bytes(random, 2 * cache::kPartBytes);
  const LargeBody large = on.put_body(text);
  int calls = 0;
  {
    const auto body = on.loads->open({.key = kKey, .body = large, .begin = 0, .end = text.size()},
                                     [&] { ++calls; });
    REQUIRE(body != nullptr);
  }
  on.run();
  on.run();
  CHECK(calls == 0);
}

TEST_CASE("a part that is still to be written is waited for, as long as it may come",
          "[exchange][disk]") {
  std::mt19937_64 random(6);
  LargeOnDisk on;
  const std::string text = random_bytes(random, 2 * cache::kPartBytes);
  const LargeBody large = on.put_body(text, 1);
  const bool comes = GENERATE(true, false);
  bool may_come = true;
  BodyReading reading(on,
                      {.key = kKey,
                       .body = large,
                       .begin = 1000,
                       .end = text.size(),
                       .may_come = [&] { return may_come; }},
                      1U << 20U);
  const auto is_behind = [&] { return reading.cursor->position() < reading.body->size(); };
  while (reading.body->size() < cache::kPartBytes || is_behind()) {
    reading.read();
    on.run();
  }
  for (int i = 0; i < 20; ++i) {
    reading.read();
    on.run();
  }
  CHECK(reading.is_growing());
  if (comes) {
    auto made = on.store->make_body({.length = text.size()});
    REQUIRE(made.has_value());
    REQUIRE((*made)->append(std::as_bytes(std::span(text))) == text.size());
    (*made)->complete();
    auto cursor = (*made)->open(cache::kPartBytes);
    REQUIRE(cursor.has_value());
    on.put_part(large, 1, cursor->copy(), cache::kPartBytes);
    on.disks->tick();
  }
  may_come = false;
  const MonotonicTime patience = monotonic_now() + std::chrono::seconds(60);
  while ((reading.is_growing() || is_behind()) && monotonic_now() < patience) {
    reading.read();
    on.run();
  }
  CHECK(reading.body->state() ==
        (comes ? store::BodyState::kComplete : store::BodyState::kAborted));
  CHECK((reading.text == text.substr(0, comes ? text.size() : cache::kPartBytes).substr(1000)));
}

}  // namespace
}  // namespace encore::server

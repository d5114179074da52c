#include <array>
#include <thread>

#include "tests/store/store_fixture.h"

namespace encore::store {

namespace {

constexpr std::uint64_t kSeed = 11;

BodyRef transfer(Store& store, BodyUse use = BodyUse::kTransfer) {
  auto body = store.make_body({std::nullopt, use});
  REQUIRE(body);
  return *body;
}

// Appends `size` bytes of the pattern in steps.
void append_pattern(Body& body, std::size_t size, std::size_t step) {
  while (size != 0) {
    const std::size_t part = std::min(size, step);
    const std::string text = pattern(kSeed, part, body.size());
    REQUIRE(body.append(bytes_of(text)) == part);
    size -= part;
  }
}

// Reads what is there and compares; returns the number of wrong bytes.
std::size_t read_and_compare(Body::Cursor& cursor, std::size_t bytes_max) {
  std::array<iovec, 3> out;
  const auto got = cursor.peek(out, bytes_max);
  std::size_t wrong = 0;
  std::uint64_t position = cursor.position();
  for (std::size_t i = 0; i < got.parts; ++i) {
    const auto* bytes = static_cast<const std::byte*>(out[i].iov_base);
    if (out[i].iov_len == 0) ++wrong;
    for (std::size_t at = 0; at < out[i].iov_len; ++at) {
      if (bytes[at] != pattern_byte(kSeed, position++)) ++wrong;
    }
  }
  cursor.advance(got.bytes);
  return wrong;
}

}  // namespace

TEST_CASE("a transfer that does not retain passes in bounded memory", "[store]") {
  const auto store = memory_store(16 * kMiB);
  const BodyRef body = transfer(*store);
  auto fast = body->open(0);
  auto slow = body->open(0);
  REQUIRE(slow);
  body->stop_retaining();
  CHECK_FALSE(body->open(0));
  std::size_t wrong = 0;
  for (int i = 0; i < 2'000; ++i) {
    append_pattern(*body, 50'000, 20'000);
    wrong += read_and_compare(*fast, 1 << 20);
    while (body->size() - slow->position() > 200'000) wrong += read_and_compare(*slow, 30'000);
    REQUIRE(body->held_bytes() <= 200'000 + 50'000 + 3 * kPageBytes);
  }
  body->complete();
  CHECK(wrong == 0);
  CHECK(fast->at_end());
  CHECK_FALSE(slow->at_end());
  CHECK(store->stats().held_bytes < 4 * kMiB);
  slow.reset();
  CHECK(body->held_bytes() <= kPageBytes);
}

TEST_CASE("a reader of a transfer holds what it has not read, or all that is kept", "[store]") {
  const auto store = memory_store(16 * kMiB);
  const BodyRef body = transfer(*store);
  append_pattern(*body, 100'000, 20'000);
  CHECK(body->held_for(30'000) == body->held_bytes());
  const auto cursor = body->open(0);
  body->stop_retaining();
  CHECK(body->held_for(30'000) == 70'000);
  CHECK(body->held_for(200'000) == 0);
  body->complete();
  CHECK(body->held_for(30'000) == 70'000);
}

TEST_CASE("a chunk goes when it was read to its last byte", "[store]") {
  const auto store = memory_store(16 * kMiB);
  const BodyRef body = transfer(*store);
  append_pattern(*body, 3 * kTransferChunkBytes, 10'000);
  auto cursor = body->open(0);
  body->stop_retaining();
  CHECK(body->held_bytes() == 3 * kTransferChunkBytes);
  cursor->advance(kTransferChunkBytes - 1);
  CHECK(body->held_bytes() == 3 * kTransferChunkBytes);
  cursor->advance(1);
  CHECK(body->held_bytes() == 2 * kTransferChunkBytes);
}

TEST_CASE("a chunk that is ended early goes when all have read what is in it", "[store]") {
  const auto store = memory_store(16 * kMiB);
  const BodyRef body = transfer(*store);
  auto fast = body->open(0);
  auto slow = body->open(0);
  body->stop_retaining();
  body->end_chunk();  // nothing is in it: it stays
  CHECK(body->held_bytes() == 0);
  append_pattern(*body, 10'000, 3'000);
  std::size_t wrong = read_and_compare(*fast, 10'000) + read_and_compare(*slow, 4'000);
  CHECK(body->held_bytes() >= 10'000);
  body->end_chunk();
  body->end_chunk();
  wrong += read_and_compare(*fast, 1);
  CHECK(body->held_bytes() >= 10'000);
  wrong += read_and_compare(*slow, 10'000);
  CHECK(body->held_bytes() == 0);
  append_pattern(*body, 100'000, 7'000);
  body->complete();
  while (!fast->at_end()) wrong += read_and_compare(*fast, 9'000);
  while (!slow->at_end()) wrong += read_and_compare(*slow, 90'000);
  CHECK(wrong == 0);
}

TEST_CASE("without readers a transfer that does not retain keeps nothing", "[store]") {
  const auto store = memory_store(16 * kMiB);
  const BodyRef body = transfer(*store);
  body->stop_retaining();
  append_pattern(*body, 10'000'000, 65'536);
  CHECK(body->held_bytes() <= kPageBytes);
}

TEST_CASE("a cursor may start beyond what was written and waits there", "[store]") {
  const auto store = memory_store(16 * kMiB);
  const BodyRef body = transfer(*store);
  auto cursor = body->open(500'000);
  REQUIRE(cursor);
  append_pattern(*body, 400'000, 64'000);
  std::array<iovec, 4> out;
  CHECK(cursor->peek(out, 1'000'000).bytes == 0);
  cursor->advance(0);
  append_pattern(*body, 200'000, 64'000);
  body->complete();
  CHECK(drain(*cursor) == pattern(kSeed, 100'000, 500'000));
  CHECK(cursor->at_end());
}

TEST_CASE("a body may begin beyond its first byte", "[store]") {
  const auto store = memory_store(16 * kMiB);
  auto made = store->make_body({.length = 900'000, .use = BodyUse::kStored, .begin = 655'360});
  REQUIRE(made.has_value());
  const BodyRef body = *made;
  CHECK(body->size() == 655'360);
  CHECK(body->held_bytes() == 0);
  auto cursor = body->open(700'000);
  REQUIRE(cursor);
  body->stop_retaining();
  const std::string text = pattern(kSeed, 244'640);
  REQUIRE(body->append(bytes_of(text)) == text.size());
  CHECK(body->size() == 900'000);
  CHECK(body->held_bytes() < 400'000);
  body->complete();
  CHECK(drain(*cursor) == text.substr(700'000 - 655'360));
  CHECK(cursor->at_end());
}

TEST_CASE("what a copied cursor has not passed stays", "[store]") {
  const auto store = memory_store(16 * kMiB);
  const BodyRef body = transfer(*store);
  auto reader = body->open(0);
  REQUIRE(reader);
  auto writer = body->open(0);
  REQUIRE(writer);
  body->stop_retaining();
  append_pattern(*body, 1'000'000, 64'000);
  (void)drain(*reader);
  {
    auto copy = writer->copy();
    writer->advance(900'000);
    CHECK(body->held_bytes() >= 1'000'000);
    body->complete();
    CHECK(drain(copy) == pattern(kSeed, 1'000'000));
  }
  CHECK(body->held_bytes() <= 100'000 + 2 * kTransferChunkBytes);
}

TEST_CASE("memory asked for and not used goes back when a body is stored", "[store]") {
  const auto store = memory_store(16 * kMiB);
  auto writer = store->reserve({"key", std::nullopt, {}});
  REQUIRE(writer);
  Body& body = *(*writer)->body();
  append_pattern(body, 20'000, 20'000);
  REQUIRE(body.writable(60'000).size() >= 40'000);
  CHECK(body.held_bytes() == kPageBytes);
  body.complete();
  auto object = (*writer)->commit({"key", {}, "head"});
  REQUIRE(object);
  CHECK(body.held_bytes() == 20'480);
  body.stop_retaining();
  CHECK(body.is_retaining());
  CHECK(store->stats().held_bytes - store->stats().idle_bytes <= 20'480 + 3 * kPageBytes);
}

TEST_CASE("one writes while eight read, some late, some leave, and every byte is right",
          "[store][threads]") {
  constexpr std::size_t kSize = 3'000'000;
  for (const bool retain : {true, false}) {
    const auto store = memory_store(64 * kMiB);
    const BodyRef body = transfer(*store, retain ? BodyUse::kStored : BodyUse::kTransfer);
    std::atomic<std::size_t> wrong{0};
    std::atomic<std::size_t> finished{0};
    std::vector<std::thread> readers;
    for (std::size_t i = 0; i < 8; ++i) {
      auto early = i % 2 == 0 ? body->open(i * 1'000) : std::nullopt;
      readers.emplace_back([&, i, cursor = std::move(early)]() mutable {
        while (!cursor) {
          if (!body->is_retaining() || body->size() > 100'000 * i) {
            cursor = body->open(50'000 * i);
            if (!cursor) return;
          }
        }
        while (!cursor->at_end()) {
          wrong += read_and_compare(*cursor, 10'000 * (i + 1));
          if (i == 5 && cursor->position() > kSize / 2) return;
        }
        ++finished;
      });
    }
    while (body->size() < kSize) {
      append_pattern(*body, std::min<std::size_t>(17'000, kSize - body->size()), 17'000);
      if (!retain && body->size() > kSize / 4) body->stop_retaining();
    }
    body->complete();
    for (auto& reader : readers) reader.join();
    CHECK(wrong == 0);
    CHECK(finished >= 4);
    if (!retain) CHECK(body->held_bytes() <= kPageBytes);
  }
}

}  // namespace encore::store

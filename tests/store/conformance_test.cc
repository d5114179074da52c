// The behaviour of every Store, whatever its implementation. An implementation joins by a line in
// kStores.
#include <array>
#include <functional>

#include "cache/charge.h"
#include "tests/store/store_fixture.h"

namespace encore::store {

using cache::charge_for;
using cache::is_inline;
using cache::ObjectSizes;

namespace {

struct Implementation {
  const char* name;
  std::unique_ptr<Store> (*make)(std::uint64_t limit_bytes);
};

constexpr std::array kStores = {Implementation{"memory", memory_store}};

// Runs the test over every implementation.
void for_each_store(std::uint64_t limit_bytes, const std::function<void(Store&)>& test) {
  for (const auto& implementation : kStores) {
    CAPTURE(implementation.name);
    const auto store = implementation.make(limit_bytes);
    test(*store);
    CHECK(store->stats().objects == 0);
    CHECK(store->stats().live_bytes == 0);
    CHECK(store->stats().pinned_bytes == 0);
  }
}

struct Meta {
  std::uint64_t number = 7;
  double other = 0.5;
};

std::span<const std::byte> meta_bytes(const Meta& meta) {
  return std::as_bytes(std::span(&meta, 1));
}

const std::string kKey = "f http://example.com/a";
const std::string kHead = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";

Result<ObjectRef> store_streamed(Store& store, std::uint64_t seed, std::size_t size, bool announced,
                                 std::size_t step) {
  ObjectSpec spec{kKey, std::nullopt, {}};
  if (announced) spec.length = size;
  auto writer = store.reserve(spec);
  if (!writer) return std::unexpected(writer.error());
  const std::string text = pattern(seed, size);
  for (std::size_t done = 0; done < size;) {
    const auto part = bytes_of(text).subspan(done, std::min(step, size - done));
    if ((*writer)->body()->append(part) != part.size()) return fail("no room");
    done += part.size();
  }
  (*writer)->body()->complete();
  const Meta meta;
  return (*writer)->commit({kKey, meta_bytes(meta), kHead});
}

}  // namespace

TEST_CASE("a small response comes back as it was stored", "[store]") {
  for_each_store(16 * kMiB, [](Store& store) {
    const Meta meta;
    for (const std::size_t size : {0U, 1U, 1024U, 8191U, 15000U}) {
      const std::string body = pattern(size, size);
      const auto half = std::string_view(body).substr(0, size / 2);
      const std::array parts = {part_of(half), iovec{},
                                part_of(std::string_view(body).substr(size / 2))};
      auto object = store.make_small({kKey, meta_bytes(meta), kHead}, parts);
      REQUIRE(object);
      CHECK((*object)->key() == kKey);
      CHECK((*object)->head() == kHead);
      CHECK((*object)->body_size() == size);
      REQUIRE((*object)->meta().size() == sizeof(Meta));
      Meta read;
      CHECK(reinterpret_cast<std::uintptr_t>((*object)->meta().data()) % 8 == 0);
      std::memcpy(&read, (*object)->meta().data(), sizeof(read));
      CHECK(read.number == 7);
      CHECK(whole_body(*object) == body);
      CHECK((*object)->charge() == charge_for({kKey.size(), sizeof(Meta), kHead.size(), size}));
    }
  });
}

TEST_CASE("a streamed response comes back whole and in ranges, whatever its size", "[store]") {
  for_each_store(64 * kMiB, [](Store& store) {
    for (const std::size_t size : {0U, 1U, 4096U, 16384U, 16385U, 65536U, 65537U, 100'000U,
                                   1'048'576U, 1'048'577U, 3'500'000U}) {
      for (const bool announced : {false, true}) {
        CAPTURE(size, announced);
        auto object = store_streamed(store, size, size, announced, 30'000);
        REQUIRE(object);
        REQUIRE((*object)->body_size() == size);
        CHECK(whole_body(*object) == pattern(size, size));
        const std::uint64_t predicted = charge_for({kKey.size(), sizeof(Meta), kHead.size(), size});
        if (announced) CHECK((*object)->charge() == predicted);
        CHECK((*object)->charge() >= predicted);
        CHECK((*object)->charge() <= predicted + 512);
        for (const std::size_t begin : {std::size_t{0}, size / 3, size / 2, size}) {
          const std::size_t end = begin + (size - begin) / 2;
          CHECK(read_range(*object, begin, end - begin) == pattern(size, end - begin, begin));
        }
      }
    }
  });
}

TEST_CASE("a large body that was announced is one part for each mebibyte", "[store]") {
  for_each_store(64 * kMiB, [](Store& store) {
    auto object = store_streamed(store, 1, kMiB, true, 16'384);
    REQUIRE(object);
    auto cursor = (*object)->body()->open(0);
    REQUIRE(cursor);
    std::array<iovec, 8> out;
    const auto got = cursor->peek(out, 2 * kMiB);
    CHECK(got.parts == 1);
    CHECK(got.bytes == kMiB);
  });
}

TEST_CASE("a freshened response has a new head and the old body", "[store]") {
  for_each_store(16 * kMiB, [](Store& store) {
    for (const std::size_t size : {100U, 15'900U, 200'000U}) {
      CAPTURE(size);
      auto old = store_streamed(store, 3, size, true, 65'536);
      REQUIRE(old);
      const std::string head = kHead + "Age: 0\r\nX: " + std::string(600, 'x') + "\r\n";
      auto fresh = store.with_head(*old, {kKey, {}, head});
      REQUIRE(fresh);
      old = ObjectRef();
      CHECK((*fresh)->head() == head);
      CHECK((*fresh)->meta().empty());
      CHECK(whole_body(*fresh) == pattern(3, size));
    }
  });
}

TEST_CASE("a writer that is dropped aborts, and its readers see it", "[store]") {
  for_each_store(16 * kMiB, [](Store& store) {
    auto writer = store.reserve({kKey, 100, {}});
    REQUIRE(writer);
    const BodyRef body = (*writer)->body();
    auto cursor = body->open(0);
    REQUIRE(cursor);
    CHECK(body->append(bytes_of("abc")) == 3);
    writer->reset();
    CHECK(body->state() == BodyState::kAborted);
    CHECK(drain(*cursor) == "abc");
    CHECK_FALSE(cursor->at_end());
  });
}

TEST_CASE("a transfer may turn into a stored one under way", "[store]") {
  for_each_store(16 * kMiB, [](Store& store) {
    auto body = store.make_body({std::nullopt, BodyUse::kTransfer});
    REQUIRE(body);
    const std::string text = pattern(9, 300'000);
    CHECK((*body)->append(bytes_of(text).first(100'000)) == 100'000);
    auto writer = store.reserve({kKey, std::nullopt, *body});
    REQUIRE(writer);
    CHECK((*body)->append(bytes_of(text).subspan(100'000)) == 200'000);
    (*body)->complete();
    auto object = (*writer)->commit({kKey, {}, kHead});
    REQUIRE(object);
    CHECK(whole_body(*object) == text);
  });
}

TEST_CASE("what is evicted under a reader is read to the end and counted as pinned", "[store]") {
  for_each_store(16 * kMiB, [](Store& store) {
    for (const std::size_t size : {1'000U, 300'000U}) {
      ToyKernel kernel(store);
      auto object = store_streamed(store, 5, size, true, 65'536);
      REQUIRE(object);
      const std::uint64_t charge = (*object)->charge();
      kernel.put(kKey, std::move(*object));
      ObjectRef held = kernel.get(kKey);
      kernel.drop(kKey);
      CHECK(store.stats().pinned_bytes == charge);
      CHECK(whole_body(held) == pattern(5, size));
      held = ObjectRef();
      CHECK(store.stats().pinned_bytes == 0);
    }
  });
}

TEST_CASE("a reader holds what only readers keep: nothing that the cache has", "[store]") {
  for_each_store(16 * kMiB, [](Store& store) {
    ToyKernel kernel(store);
    auto object = store_streamed(store, 5, 300'000, true, 65'536);
    REQUIRE(object);
    kernel.put(kKey, std::move(*object));
    ObjectRef held = kernel.get(kKey);
    const BodyRef body = BodyRef::share(held->body());
    CHECK(body->held_for(0) == 0);
    // A freshened one has the body on; the old one goes.
    auto renewed = store.with_head(held, {kKey, {}, kHead});
    REQUIRE(renewed);
    kernel.drop(kKey);
    kernel.put(kKey, std::move(*renewed));
    CHECK(body->held_for(100'000) == 0);
    // An object that never comes into the cache has no part in it.
    {
      auto unused = store.with_head(held, {kKey, {}, kHead});
    }
    CHECK(body->held_for(0) == 0);
    kernel.drop(kKey);
    CHECK(body->held_for(100'000) == body->held_bytes());
  });
}

TEST_CASE("what does not fit is refused with an error that says so", "[store]") {
  for_each_store(4 * kMiB, [](Store& store) {
    const std::string head(cache::kObjectBytesMax, 'h');
    CHECK_FALSE(store.make_small({kKey, {}, head}, {}));
    const std::string key(cache::kKeyBytesMax + 1, 'k');
    CHECK_FALSE(store.make_small({key, {}, kHead}, {}));
    const std::string body(17'000, 'b');
    const iovec part = part_of(body);
    const auto refused = store.make_small({kKey, {}, kHead}, {&part, 1});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("too large for an object") != std::string::npos);
  });
}

TEST_CASE("a head that fits no slot is stored, with any body and under any head", "[store]") {
  for_each_store(16 * kMiB, [](Store& store) {
    const std::string key(60'000, 'k');
    const std::uint64_t before = store.stats().live_bytes;
    {
      std::vector<ObjectRef> objects;
      for (const std::size_t bytes : {10'000U, 16'300U, 17'000U, 65'536U, 130'000U, 190'000U}) {
        const std::string head = pattern(bytes, bytes);
        auto empty = store.make_small({key, {}, head}, {});
        REQUIRE(empty);
        CHECK((*empty)->key() == key);
        CHECK((*empty)->head() == head);
        CHECK((*empty)->body_size() == 0);
        CHECK((*empty)->is_inline());
        CHECK((*empty)->charge() ==
              cache::charge_for({.key = key.size(), .meta = 0, .head = bytes, .body = 0}));
        objects.push_back(*empty);
        auto streamed = store_streamed(store, 3, 30'000, true, 1'000);
        REQUIRE(streamed);
        auto renamed = store.with_head(*streamed, {kKey, {}, head});
        REQUIRE(renamed);
        CHECK((*renamed)->head() == head);
        CHECK(whole_body(*renamed) == whole_body(*streamed));
        auto shorter = store.with_head(*renamed, {kKey, {}, kHead});
        REQUIRE(shorter);
        CHECK(whole_body(*shorter) == whole_body(*streamed));
        // A small body moves out.
        const std::string body = pattern(5, 900);
        const iovec part = part_of(body);
        auto small = store.make_small({kKey, {}, kHead}, {&part, 1});
        REQUIRE(small);
        auto moved_out = store.with_head(*small, {kKey, {}, head});
        REQUIRE(moved_out);
        CHECK(whole_body(*moved_out) == body);
        objects.push_back(*renamed);
        objects.push_back(*moved_out);
      }
    }
    CHECK(store.stats().live_bytes == before);
    CHECK(store.stats().objects == 0);
  });
}

TEST_CASE("at the memory limit a request fails and leaves what is stored alone", "[store]") {
  for_each_store(4 * kMiB, [](Store& store) {
    std::vector<ObjectRef> objects;
    const std::string body = pattern(1, 1'000);
    const iovec part = part_of(body);
    for (;;) {
      auto object = store.make_small({kKey, {}, kHead}, {&part, 1});
      if (!object) {
        CHECK(object.error().message.find("no memory") != std::string::npos);
        break;
      }
      objects.push_back(std::move(*object));
      REQUIRE(objects.size() < 4'100);
    }
    CHECK(objects.size() > 3'500);
    CHECK(store.stats().held_bytes <= 4 * kMiB);
    CHECK(store.stats().failed_requests == 1);
    CHECK_FALSE(store_streamed(store, 2, 100'000, true, 100'000));
    // An append counts as well, where it begins a chunk and where it goes on in one.
    CHECK(store.stats().failed_requests > 1);
    for (const auto& object : objects) CHECK(whole_body(object) == body);
    objects.clear();
    CHECK(store_streamed(store, 2, 3 * kMiB, true, 100'000));
  });
}

TEST_CASE("an append that finds no memory is counted", "[store]") {
  for_each_store(1 * kMiB, [](Store& store) {
    for (const BodyUse use : {BodyUse::kTransfer, BodyUse::kStored}) {
      const auto body = store.make_body({.length = 8 * kMiB, .use = use});
      REQUIRE(body);
      const std::uint64_t before = store.stats().failed_requests;
      const std::string bytes = pattern(1, 8 * kMiB);
      CHECK((*body)->append(std::as_bytes(std::span(bytes))) < bytes.size());
      CHECK(store.stats().failed_requests == before + 1);
      CHECK((*body)->append(std::as_bytes(std::span(bytes))) == 0);
      CHECK(store.stats().failed_requests == before + 2);
    }
  });
}

}  // namespace encore::store

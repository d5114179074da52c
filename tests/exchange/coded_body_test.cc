// A coded body that finds no memory goes on when there is some, wherever in the content it is.
#include "proxy/exchange/coded_body.h"

#include <array>
#include <random>
#include <string>
#include <vector>

#include "base/units.h"
#include "proxy/coding/make_encoder.h"
#include "proxy/store/memory_store.h"
#include "tests/catch.h"
#include "tests/coding/gunzipped.h"

namespace encore::server {
namespace {

constexpr std::uint64_t kMemory = 4 * kMiB;

std::string incompressible(std::size_t bytes) {
  std::minstd_rand random(7);
  std::string text(bytes, '\0');
  for (char& letter : text) letter = static_cast<char>(random() >> 8U);
  return text;
}

// Counts how often it is flushed.
class CountedEncoder final : public coding::Encoder {
 public:
  explicit CountedEncoder(int& flushes) : flushes_(flushes) {}
  Step encode(std::span<const std::byte> in, std::span<std::byte> out, InputAction then) override {
    flushes_ += then == InputAction::kFlush ? 1 : 0;
    return encoder_->encode(in, out, then);
  }

 private:
  const std::unique_ptr<coding::Encoder> encoder_ = coding::make_encoder(coding::Coding::kGzip, 1);
  int& flushes_;
};

struct CodedFixture {
  explicit CodedFixture(CodedBody::Flush when = CodedBody::Flush::kSoon) : body(begin(when)) {}

  CodedBody begin(CodedBody::Flush when) {
    return {*loop, turn,
            CodedBody::Made{.encoder = std::make_unique<CountedEncoder>(flushes),
                            .memory = std::move(*coding_memory.take(1, 1)),
                            .body = std::move(*store->make_body({})),
                            .flush = when,
                            .keep = CodedBody::Keep::kAll},
            [this] { ++calls; }};
  }
  // Another body has all memory that is left.
  void take_memory() {
    hog = std::move(*store->make_body({}));
    while (!hog->writable(1).empty()) hog->append(hog->writable(1).size());
  }
  void wait_for_call() {
    for (const int before = calls; calls == before;) loop->turn();
  }
  std::string coded() const {
    auto cursor = body.body()->open(0);
    REQUIRE(cursor);
    std::string all;
    std::array<iovec, 8> parts;
    while (true) {
      const auto seen = cursor->peek(parts, kMemory);
      if (seen.bytes == 0) return all;
      for (std::size_t i = 0; i < seen.parts; ++i) {
        all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
      }
      cursor->advance(seen.bytes);
    }
  }

  std::unique_ptr<net::Loop> loop = std::move(*net::Loop::create());
  std::unique_ptr<store::Store> store =
      std::move(*store::make_memory_store({.limit_bytes = kMemory, .idle_bytes_max = 0}));
  CodingTurn turn{*loop};
  CodingMemory coding_memory;
  int calls = 0;
  int flushes = 0;
  CodedBody body;
  store::BodyRef hog;
};

}  // namespace

TEST_CASE("a coded body without memory goes on when there is some", "[exchange][coding]") {
  for (const std::size_t bytes : {0U, 1U, 60'000U, 300'000U}) {
    INFO(bytes << " bytes");
    const std::string content = incompressible(bytes);
    CodedFixture fixture;
    if (bytes != 0) fixture.body.source().add_text(content);
    int waits = 0;
    // Memory is gone, then there, at each step.
    while (fixture.body.body()->state() == store::BodyState::kGrowing) {
      REQUIRE(++waits < 50);
      fixture.take_memory();
      fixture.body.produce(0);
      fixture.hog = {};
      if (fixture.body.body()->state() != store::BodyState::kGrowing) break;
      if (!fixture.body.wants_turn()) fixture.wait_for_call();
      fixture.body.produce(0);
    }
    CHECK(fixture.body.body()->state() == store::BodyState::kComplete);
    CHECK_FALSE(fixture.body.ran_out());
    CHECK(gunzipped(fixture.coded()) == content);
  }
}

TEST_CASE("a coded body takes its share of a turn and no more", "[exchange][coding]") {
  CodedFixture fixture;
  fixture.body.source().add_text(std::string(2 * CodingTurn::kShareMax, 'a'));
  fixture.body.produce(0);
  CHECK(fixture.body.wants_turn());
  CHECK_FALSE(fixture.body.source().at_end());
  CHECK(fixture.body.body()->state() == store::BodyState::kGrowing);
}

TEST_CASE("what waits for more is flushed once", "[exchange][coding]") {
  CodedFixture fixture(GENERATE(CodedBody::Flush::kAtOnce, CodedBody::Flush::kSoon));
  auto content = std::move(*fixture.store->make_body({}));
  REQUIRE(fixture.body.source().set_body(content));
  fixture.body.source().add_rest();
  fixture.body.produce(0);
  CHECK(fixture.flushes == 0);
  for (int pieces = 1; pieces <= 3; ++pieces) {
    const std::string piece = incompressible(1000);
    REQUIRE(content->append(std::as_bytes(std::span(piece))) == piece.size());
    fixture.body.produce(0);
    while (fixture.flushes < pieces) {
      fixture.wait_for_call();
      fixture.body.produce(0);
    }
    fixture.body.produce(0);
    CHECK(fixture.flushes == pieces);
  }
}

}  // namespace encore::server

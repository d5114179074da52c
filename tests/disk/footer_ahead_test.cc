#include "proxy/disk/footer_ahead.h"

#include <atomic>
#include <cstddef>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/disk/model/memory_file.h"
#include "tests/disk/model/watched_file.h"

namespace encore::disk {
namespace {

constexpr std::uint32_t kSegments = 3;

// A disk whose segments have a line more each, but for the last one, which has no footer.
struct SomeFooters {
  SomeFooters() : memory(image()), file(memory), ahead(file, block) {
    file.on_read = [this](std::size_t) { ++reads; };
  }
  static Superblock superblock() {
    Superblock made;
    made.segments = kSegments;
    made.segment_bytes = std::uint64_t{256} << 10U;
    return made;
  }
  static SegmentHeader header(std::uint32_t segment) {
    SegmentHeader made;
    made.segment = segment;
    made.sequence = 7 + segment;
    return made;
  }
  static Footer footer(std::uint32_t segment) {
    Footer made;
    made.sequence = header(segment).sequence;
    made.lines.resize(1 + segment);
    for (RecordLine& line : made.lines) {
      line.unit = 64;
      line.room_units = 2;
      line.version = ++made.version_max;
    }
    return made;
  }
  static Image image() {
    const Superblock block = superblock();
    Image image(block.segment_offset(kSegments));
    for (std::uint32_t segment = 0; segment + 1 < kSegments; ++segment) {
      const Footer made = footer(segment);
      const std::uint64_t bytes = footer_bytes(made);
      encode_footer(made, block.salt(segment, made.sequence), block.segment_bytes,
                    std::span(image).subspan(block.segment_offset(segment + 1) - bytes, bytes));
    }
    return image;
  }
  // False: it is not that of this segment.
  bool takes(std::uint32_t segment) {
    const auto taken = ahead.take();
    if (segment + 1 == kSegments) return !taken;
    return taken && taken->lines == footer(segment).lines;
  }

  MemoryFile memory;
  WatchedFile file;
  std::atomic<int> reads = 0;
  const Superblock block = superblock();
  FooterAhead ahead;
};

TEST_CASE("each footer is read once, ahead or where it is taken", "[disk]") {
  const bool is_ahead = GENERATE(false, true);
  SomeFooters f;
  f.ahead.read();  // nothing is wanted
  CHECK(f.reads == 0);
  for (std::uint32_t segment = 0; segment < kSegments; ++segment) {
    CAPTURE(segment);
    f.ahead.want(SomeFooters::header(segment), {});
    if (is_ahead) {
      f.ahead.read();
      f.ahead.read();
      CHECK(f.reads == 1);
    }
    CHECK(f.takes(segment));
    CHECK(f.reads.exchange(0) == 1);
    f.ahead.read();  // by another thread, too late
    CHECK(f.reads == 0);
  }
  f.ahead.release();
  f.ahead.read();
  CHECK(f.reads == 0);
}

TEST_CASE("a footer is waited for while another thread reads it", "[disk]") {
  SomeFooters f;
  std::promise<void> begun;
  std::promise<void> released;
  f.file.on_read = [&](std::size_t) {
    ++f.reads;
    begun.set_value();
    released.get_future().wait();
  };
  f.ahead.want(SomeFooters::header(1), {});
  const std::jthread reader([&] { f.ahead.read(); });
  begun.get_future().wait();
  bool is_right = false;
  {
    const std::jthread taker([&] { is_right = f.takes(1); });
    released.set_value();
  }
  CHECK(is_right);
  CHECK(f.reads == 1);
}

TEST_CASE("lines of a footer are read into the memory that is given", "[disk]") {
  SomeFooters f;
  std::vector<RecordLine> lines;
  lines.reserve(100);
  const RecordLine* const place = lines.data();
  f.ahead.want(SomeFooters::header(1), std::move(lines));
  const auto taken = f.ahead.take();
  REQUIRE(taken);
  CHECK(taken->lines.data() == place);
}

}  // namespace
}  // namespace encore::disk

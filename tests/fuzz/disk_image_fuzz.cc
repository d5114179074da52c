// A whole disk that was used, with changes: whatever it is then, a start on it ends, what is read
// is what was written, and what is written to it now is found by the next start. A change is of
// any bytes, or of a field behind a checksum that is made right again.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "proxy/disk/bytes.h"
#include "proxy/disk/open.h"
#include "tests/disk/model/driver.h"
#include "tests/disk/model/history.h"
#include "tests/disk/model/made_record.h"
#include "tests/disk/model/memory_file.h"
#include "tests/disk/model/start.h"

namespace {

using namespace encore;
using namespace encore::disk;

constexpr DriverOptions kDisk{.disk_bytes = (256U + 5 * 64U) << 10U, .segment_bytes = 64U << 10U};

struct Used {
  History history;
  Image image;
  Superblock superblock;
  std::vector<FoundRecord> records;
};

const Used& used() {
  static const std::unique_ptr<const Used> disk = [] {
    auto made = std::make_unique<Used>();
    MemoryFile file;
    {
      Driver driver(file, kDisk, made->history, 11);
      for (int i = 0; i < 40; ++i) driver.step();
    }
    made->image = file.image();
    made->superblock = *read_superblock(file);
    Start start(file, made->superblock, {.writes_footers = false});
    made->records = start.records();
    made->history.forget_durable();
    return made;
  }();
  return *disk;
}

// Takes numbers from the input, zeros at its end.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t value = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return value;
  }
  std::uint32_t number() {
    std::uint32_t value = 0;
    for (int i = 0; i < 3; ++i) value = value << 8U | byte();
    return value;
  }
  void write(std::byte* at, std::size_t room) {
    for (std::size_t count = std::min<std::size_t>(byte() % 32, room); count != 0; --count) {
      *at++ = std::byte{byte()};
    }
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

// Changes the disk so that it may hold what nobody has given it.
bool change(Image& image, Input& input) {
  const Superblock& block = used().superblock;
  const auto kind = input.byte() % 4;
  if (kind == 0) {
    const std::size_t at = input.number() % (image.size() - 32);
    input.write(image.data() + at, 32);
    return false;
  }
  if (kind == 1) {
    const std::uint64_t copy = input.byte() % 2 == 0 ? 0 : kSecondSuperblock;
    std::byte* const page = image.data() + copy;
    input.write(page + 8 + input.byte() % 96, 32);
    const std::span<const std::byte> sealed(page, kSectorBytes - kSumBytes);
    put(page + sealed.size(), checksum(0x454e434f4449534bU, copy, sealed));
    return true;
  }
  if (kind == 2) {
    const auto segment = input.byte() % block.segments;
    std::byte* const page = image.data() + block.segment_offset(segment);
    input.write(page + 8 + input.byte() % 24, 24);
    const std::span<const std::byte> sealed(page, kSectorBytes - kSumBytes);
    const auto sequence = get<std::uint64_t>(page + 8);
    put(page + sealed.size(), checksum(block.salt(segment, sequence), 0, sealed));
    return true;
  }
  const FoundRecord& record = used().records.at(input.byte() % used().records.size());
  const Salt salt = block.salt(record.segment, record.sequence);
  const std::uint64_t offset = record.place().offset();
  std::byte* const header = image.data() + block.segment_offset(record.segment) + offset;
  input.write(header + 4 + input.byte() % 84, 32);
  put(header + 120, checksum(salt, offset, {header, 120}));
  return true;
}

void write_more(MemoryFile& file, const Superblock& block) {
  Start start(file, block, {});
  if (!start.refusal().empty()) return;
  SegmentWriter writer(file, block, start.found());
  std::mt19937_64 random(5);
  MadeRecord made = made_record(random, {RecordKind::kObject, 3000, 2});
  made.fields.version = start.found().version_max + 2;
  const cache::DiskPlace place{0, 0, 64, cache::disk_room(record_bytes(shape_of(made.view())))};
  ENCORE_CHECK(writer.open({0, 0, writer.sequence_max() + 2}, 1), "nothing fails in memory");
  writer.add(made.view(), place);
  ENCORE_CHECK(writer.seal(), "nothing fails in memory");
  const auto purges = start.take_purges();
  Purge purge;
  purge.key = {1, 2};
  purge.version = made.fields.version;
  purge.sequence = writer.sequence_max();
  if (purges->append({&purge, 1})) (void)purges->prune(writer.sequence_min());
  const Start next(file, block, {});
  if (!next.refusal().empty()) return;
  const bool is_found = std::ranges::any_of(next.winners(), [&](const Start::Winner& winner) {
    return winner.object.fields == made.fields && winner.object.body == made.body;
  });
  // A purge of everything may have lain there before.
  ENCORE_CHECK(is_found || made.fields.version > kNumberMax || next.counts().purged != 0,
               "what was written is found");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input({data, size});
  Image image = used().image;
  bool is_forged = false;
  for (int i = 0; i < 8 && !input.empty(); ++i) is_forged = change(image, input) || is_forged;
  std::uint64_t found = 0;
  const auto fault = fault_on(image, used().history, &found);
  // An attacker who makes the checksums right can make it old, too; never other bytes than were
  // written.
  ENCORE_CHECK(is_forged || !fault, "only what was promised is found");
  MemoryFile file(std::move(image));
  const auto block = read_superblock(file);
  // A disk that says it is far larger than it is would take its time.
  if (block && block->segments <= 64 && block->data_offset <= file.image().size()) {
    if (file.allocate(std::min<std::uint64_t>(block->disk_bytes(), 8U << 20U)) &&
        block->disk_bytes() <= file.image().size()) {
      write_more(file, *block);
    }
  }
  return 0;
}

// Decodes bytes as each thing that lies on a disk, once as they are and once with the checksums
// made right, so that the code behind them is reached. The first byte says which. A decoded thing
// is within its bounds, and is the same when it was encoded again.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "proxy/disk/bytes.h"
#include "proxy/disk/footer.h"
#include "proxy/disk/format.h"
#include "proxy/disk/purge_frame.h"
#include "proxy/disk/record.h"

namespace {

using namespace encore;
using namespace encore::disk;

using Bytes = std::vector<std::byte>;

constexpr Salt kSuperblockSalt = 0x454e434f4449534bU;
constexpr Uuid kDisk{1, 2};
constexpr std::uint64_t kSegment = 1U << 20U;
constexpr Salt kSalt = 77;
constexpr std::uint64_t kSequence = 9;

void seal(std::byte* page, Salt salt) {
  const std::span<const std::byte> sealed(page, kSectorBytes - kSumBytes);
  put(page + sealed.size(), checksum(salt, 0, sealed));
}

void fuzz_superblock(Bytes bytes, bool is_sealed) {
  bytes.resize(kPageBytes);
  if (is_sealed) {
    std::memcpy(bytes.data(), "ENCODISK", 8);
    seal(bytes.data(), kSuperblockSalt);
  }
  const auto decoded = decode_superblock(ConstPage(bytes), 0);
  if (decoded.kind != PageKind::kOurs) return;
  const Superblock& block = decoded.superblock;
  ENCORE_CHECK(block.segments != 0 && block.disk_bytes() > block.data_offset, "sizes add up");
  ENCORE_CHECK(segments_in(block, block.disk_bytes()) == block.segments, "in both directions");
  Bytes again(kPageBytes);
  encode(block, 0, Page(again));
  ENCORE_CHECK(decode_superblock(ConstPage(again), 0).superblock == block, "encoded again");
}

void fuzz_header(Bytes bytes, bool is_sealed) {
  bytes.resize(kPageBytes);
  if (is_sealed) {
    std::memcpy(bytes.data(), "ENCOSEGM", 8);
    put(bytes.data() + 24, std::uint32_t{3});
    seal(bytes.data(), salt_of(kDisk, 3, get<std::uint64_t>(bytes.data() + 8)));
  }
  const auto header = decode_segment_header(ConstPage(bytes), kDisk, 3);
  if (!header) return;
  Bytes again(kPageBytes);
  encode(*header, kDisk, Page(again));
  ENCORE_CHECK(decode_segment_header(ConstPage(again), kDisk, 3) == header, "encoded again");
}

void fuzz_footer(Bytes bytes, bool is_sealed) {
  bytes.resize(std::max<std::size_t>(1, (bytes.size() + kPageBytes - 1) / kPageBytes) * kPageBytes);
  std::byte* const head = bytes.data() + bytes.size() - cache::kFooterHeadBytes;
  if (is_sealed) {
    // Its fields come from the front, where a fuzzer writes first.
    std::memcpy(head, "ENCOFOOT", 8);
    put(head + 8, kSequence);
    std::memcpy(head + 16, bytes.data(), 16);
    put(head + 56,
        checksum(kSalt, kSegment - bytes.size(), std::span(bytes).first(bytes.size() - kSumBytes)));
  }
  const auto footer = decode_footer(bytes, kSequence, kSalt, kSegment);
  if (!footer) return;
  for (const RecordLine& line : footer->lines) {
    const std::uint64_t end =
        (std::uint64_t{line.unit} + line.room_units) * std::uint64_t{cache::kDiskUnit};
    ENCORE_CHECK(end <= kSegment, "a record within the segment");
    ENCORE_CHECK(footer->names.text(line.names).size() <= cache::kNamesBytesMax, "a name");
  }
  Bytes again(footer_bytes(*footer));
  encode_footer(*footer, kSalt, kSegment, again);
  const auto decoded = decode_footer(again, kSequence, kSalt, kSegment);
  ENCORE_CHECK(decoded && decoded->lines == footer->lines, "encoded again");
}

void fuzz_record(Bytes bytes, bool is_sealed) {
  constexpr std::uint64_t kOffset = 4096;
  if (bytes.size() < kRecordHeaderBytes) return;
  if (is_sealed) {
    put(bytes.data(), std::uint32_t{0x43524e45});
    put(bytes.data() + 120, checksum(kSalt, kOffset, std::span(bytes).first(120)));
  }
  const auto first = std::span<const std::byte>(bytes).first<kRecordHeaderBytes>();
  auto header = decode_header(first, kSalt, kOffset);
  if (!header) return;
  ENCORE_CHECK(record_bytes(header->shape) <= kFrontBytesMax + kPageBytes + kRecordBodyMax,
               "a record of bounded size");
  if (front_bytes(header->shape) > bytes.size()) return;
  bytes.resize(front_bytes(header->shape));
  if (is_sealed) {
    header->front_sum =
        checksum(kSalt, kOffset + kRecordHeaderBytes, std::span(bytes).subspan(kRecordHeaderBytes));
  }
  const auto front = decode_front(*header, bytes, kSalt, kOffset);
  if (!front) return;
  const RecordFields& fields = front->fields;
  ENCORE_CHECK(fields.kind == RecordKind::kObject || fields.body != 0, "a body with a number");
  if (fields.kind == RecordKind::kHead) {
    ENCORE_CHECK(fields.body_bytes <= kBodyBytesMax && front->block_sums.empty(), "no body here");
    const Record head{.fields = fields, .text = front->text, .body = {}};
    Bytes again(front_bytes(shape_of(head)));
    encode_front(head, kSalt, kOffset, again);
    const auto once_more = decode_header(
        std::span<const std::byte>(again).first<kRecordHeaderBytes>(), kSalt, kOffset);
    ENCORE_CHECK(once_more && once_more->fields == fields, "encoded again");
  }
  const std::size_t blocks = block_count(front->shape.body_bytes);
  ENCORE_CHECK(front->block_sums.size() == blocks * kSumBytes, "a checksum for each block");
  if (blocks != 0) {
    const Bytes block(front->block_bytes(blocks - 1));
    (void)front->is_block(blocks - 1, block);
  }
}

void fuzz_frame(Bytes bytes, bool is_sealed) {
  bytes.resize(std::clamp<std::size_t>((bytes.size() + kPageBytes - 1) / kPageBytes * kPageBytes,
                                       kPageBytes, kFrameBytesMax));
  if (is_sealed) put(bytes.data(), std::uint32_t{0x4c504e45});
  const auto head = frame_head(ConstPage(std::span(bytes).first<kPageBytes>()));
  if (!head || head->bytes > bytes.size()) return;
  bytes.resize(head->bytes);
  if (is_sealed) {
    const std::uint64_t sum = checksum(kSalt, 0, std::span(bytes).first(24));
    put(bytes.data() + 24, checksum(kSalt ^ sum, 0, std::span(bytes).subspan(kFrameHeaderBytes)));
  }
  const auto frame = decode_frame(bytes, kSalt, 0);
  if (!frame) return;
  FrameBuilder again;
  std::vector<Purge> purges;
  for_each_purge(frame->entries, [&](const Purge& purge) {
    ENCORE_CHECK(again.add(purge), "what was one frame is one again");
    purges.push_back(purge);
  });
  const auto sealed = again.seal({kSalt, head->epoch, 0, frame->ends_snapshot});
  const auto decoded = decode_frame(sealed, kSalt, 0);
  ENCORE_CHECK(decoded, "encoded again");
  std::size_t i = 0;
  for_each_purge(decoded->entries, [&](const Purge& purge) {
    ENCORE_CHECK(purge == purges.at(i++), "the same purges");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto all = std::as_bytes(std::span(data, size));
  const Bytes bytes(all.begin() + 1, all.end());
  for (const bool is_sealed : {false, true}) {
    switch (data[0] % 5) {
      case 0:
        fuzz_superblock(bytes, is_sealed);
        break;
      case 1:
        fuzz_header(bytes, is_sealed);
        break;
      case 2:
        fuzz_footer(bytes, is_sealed);
        break;
      case 3:
        fuzz_record(bytes, is_sealed);
        break;
      default:
        fuzz_frame(bytes, is_sealed);
        break;
    }
  }
  return 0;
}

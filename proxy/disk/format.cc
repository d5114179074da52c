#include "proxy/disk/format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "proxy/disk/bytes.h"

namespace encore::disk {
namespace {

constexpr std::string_view kDiskMagic = "ENCODISK";
constexpr std::string_view kSegmentMagic = "ENCOSEGM";
constexpr std::size_t kFormatVersionAt = 8;
constexpr std::size_t kOpenedAt = 28;  // in a segment's header
constexpr std::size_t kRunsAt = 96;    // in a superblock
constexpr std::size_t kRunAt = kRunsAt + 16;
// A header fits one sector, which no torn write takes apart: a page that tears would refuse a start
// (docs/decisions/0110).
constexpr std::size_t kPageSumAt = kSectorBytes - kSumBytes;
static_assert(kRunAt + RunHistory::kRunsMax * sizeof(RunId) <= kPageSumAt);
// The superblock says itself which disk it is of.
constexpr Salt kSuperblockSalt = 0x454e434f4449534bU;
// Far beyond any device; sums of such numbers do not overflow.
constexpr std::uint64_t kOffsetMax = std::uint64_t{1} << 50U;

void begin_page(Page out, std::string_view magic) {
  std::ranges::fill(out, std::byte{0});
  std::memcpy(out.data(), magic.data(), magic.size());
}

bool begins_with(ConstPage page, std::string_view magic) {
  return std::memcmp(page.data(), magic.data(), magic.size()) == 0;
}

void seal_page(Page out, Salt salt, std::uint64_t offset) {
  put(out.data() + kPageSumAt, checksum(salt, offset, out.first<kPageSumAt>()));
}

bool is_sealed(ConstPage page, Salt salt, std::uint64_t offset) {
  return get<std::uint64_t>(page.data() + kPageSumAt) ==
         checksum(salt, offset, page.first<kPageSumAt>());
}

bool is_sound(const Superblock& block) {
  return std::has_single_bit(block.segment_bytes) &&
         block.segment_bytes >= cache::kSegmentBytesMin &&
         block.segment_bytes <= cache::kSegmentBytesMax && block.segments >= 1 &&
         block.segments <= cache::kSegmentsMax && block.purge_offset % kPageBytes == 0 &&
         block.purge_bytes % kPageBytes == 0 && block.data_offset % kPageBytes == 0 &&
         block.purge_bytes >= kPurgeBytesMin && block.purge_bytes <= kPurgeBytesMax &&
         block.purge_offset >= kSecondSuperblock + kPageBytes && block.purge_offset <= kOffsetMax &&
         block.data_offset >= block.purge_offset + 2 * block.purge_bytes &&
         block.data_offset <= kOffsetMax;
}

// Earlier versions leave zeros: no run.
void put_runs(const RunHistory& history, Page out) {
  put(out.data() + kRunsAt, history.number());
  put(out.data() + kRunsAt + 8, static_cast<std::uint16_t>(history.runs().size()));
  put(out.data() + kRunsAt + 10, static_cast<std::uint16_t>(history.valid_from()));
  std::byte* at = out.data() + kRunAt;
  for (const RunId run : history.runs()) {
    put(at, run);
    at += sizeof run;
  }
}

std::optional<RunHistory> get_runs(ConstPage page) {
  std::array<RunId, RunHistory::kRunsMax> runs{};
  const std::size_t count = get<std::uint16_t>(page.data() + kRunsAt + 8);
  if (count > runs.size()) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    runs[i] = get<RunId>(page.data() + kRunAt + i * sizeof(RunId));
  }
  return RunHistory::restore(get<std::uint64_t>(page.data() + kRunsAt),
                             get<std::uint16_t>(page.data() + kRunsAt + 10),
                             std::span(runs).first(count));
}

bool is_blank(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](auto byte) { return byte == std::byte{0}; });
}

PageKind kind_without_magic(ConstPage page, std::uint64_t offset) {
  if (is_blank(page)) return PageKind::kBlank;
  // One that has lost nothing but its magic is ours nevertheless.
  std::array<std::byte, kPageBytes> with_magic{};
  std::ranges::copy(page, with_magic.begin());
  std::memcpy(with_magic.data(), kDiskMagic.data(), kDiskMagic.size());
  return is_sealed(with_magic, kSuperblockSalt, offset) ? PageKind::kDamaged : PageKind::kForeign;
}

bool is_one_bit_off(ConstPage page, const Uuid& disk, std::uint32_t segment) {
  // A device flips single bits; what another program has written differs in many.
  std::array<std::byte, kPageBytes> copy{};
  std::ranges::copy(page, copy.begin());
  for (std::size_t bit = 0; bit < kSectorBytes * 8; ++bit) {
    const auto mask = std::byte{1} << static_cast<int>(bit % 8);
    copy[bit / 8] ^= mask;
    if (decode_segment_header(copy, disk, segment)) return true;
    copy[bit / 8] ^= mask;
  }
  return false;
}

}  // namespace

std::uint64_t segments_in(const Superblock& superblock, std::uint64_t disk_bytes) {
  if (disk_bytes < superblock.data_offset) return 0;
  return (disk_bytes - superblock.data_offset) / superblock.segment_bytes;
}

Result<Superblock> lay_out(std::uint64_t disk_bytes, std::uint64_t segment_bytes) {
  const auto layout = cache::lay_out_disk(disk_bytes, segment_bytes);
  if (!layout) return std::unexpected(layout.error());
  Superblock block;
  block.purge_offset = layout->purge_offset;
  block.purge_bytes = layout->purge_bytes;
  block.data_offset = layout->data_offset;
  block.segment_bytes = layout->segment_bytes;
  block.segments = layout->segments;
  return block;
}

void encode(const Superblock& block, std::uint64_t offset, Page out) {
  begin_page(out, kDiskMagic);
  put(out.data() + kFormatVersionAt, kFormatVersion);
  std::byte* at = out.data() + 16;
  for (const std::uint64_t number :
       {block.generation, block.uuid.lo, block.uuid.hi, block.identity_seed.lo,
        block.identity_seed.hi, block.purge_offset, block.purge_bytes, block.data_offset,
        block.segment_bytes}) {
    put(at, number);
    at += sizeof number;
  }
  put(at, block.segments);
  put(at + 4, block.made_at);
  put_runs(block.runs, out);
  seal_page(out, kSuperblockSalt, offset);
}

DecodedSuperblock decode_superblock(ConstPage page, std::uint64_t offset) {
  if (!begins_with(page, kDiskMagic)) return {kind_without_magic(page, offset), 0, {}};
  const auto version = get<std::uint32_t>(page.data() + kFormatVersionAt);
  if (!is_sealed(page, kSuperblockSalt, offset)) return {PageKind::kDamaged, 0, {}};
  if (version > kFormatVersion) return {PageKind::kNewer, version, {}};
  Superblock block;
  const std::byte* at = page.data() + 16;
  for (std::uint64_t* const number :
       {&block.generation, &block.uuid.lo, &block.uuid.hi, &block.identity_seed.lo,
        &block.identity_seed.hi, &block.purge_offset, &block.purge_bytes, &block.data_offset,
        &block.segment_bytes}) {
    *number = get<std::uint64_t>(at);
    at += sizeof *number;
  }
  block.segments = get<std::uint32_t>(at);
  block.made_at = get<std::uint32_t>(at + 4);
  const auto runs = get_runs(page);
  if (version == 0 || !is_sound(block) || !runs) return {PageKind::kDamaged, 0, {}};
  block.runs = *runs;
  return {PageKind::kOurs, version, block};
}

void encode(const SegmentHeader& header, const Uuid& disk, Page out) {
  begin_page(out, kSegmentMagic);
  put(out.data() + 8, header.sequence);
  put(out.data() + 16, header.versions_seen);
  put(out.data() + 24, header.segment);
  put(out.data() + kOpenedAt, header.opened_at);
  seal_page(out, salt_of(disk, header.segment, header.sequence), 0);
}

std::optional<SegmentHeader> decode_segment_header(ConstPage page, const Uuid& disk,
                                                   std::uint32_t segment) {
  if (!begins_with(page, kSegmentMagic)) return std::nullopt;
  const SegmentHeader header{.segment = get<std::uint32_t>(page.data() + 24),
                             .sequence = get<std::uint64_t>(page.data() + 8),
                             .versions_seen = get<std::uint64_t>(page.data() + 16),
                             .opened_at = get<std::uint32_t>(page.data() + kOpenedAt)};
  if (header.segment != segment || header.sequence == 0 || header.sequence > kNumberMax ||
      header.versions_seen > kNumberMax) {
    return std::nullopt;
  }
  if (!is_sealed(page, salt_of(disk, segment, header.sequence), 0)) return std::nullopt;
  return header;
}

PageKind kind_of_header(ConstPage page, const Superblock& superblock, std::uint32_t segment) {
  if (decode_segment_header(page, superblock.uuid, segment)) return PageKind::kOurs;
  if (is_blank(page.first<kSectorBytes>())) return PageKind::kBlank;
  // On an earlier disk the time is older, too.
  const bool is_later = get<std::uint32_t>(page.data() + kOpenedAt) >= superblock.made_at;
  if (begins_with(page, kSegmentMagic) && is_later) return PageKind::kDamaged;
  return is_one_bit_off(page, superblock.uuid, segment) ? PageKind::kDamaged : PageKind::kForeign;
}

}  // namespace encore::disk

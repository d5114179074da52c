#include "proxy/disk/cli/inspected_disk.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "proxy/disk/aligned_buffer.h"
#include "proxy/disk/open.h"

namespace encore::disk {
namespace {

// Each has met another rewriting of the log, of which there is about one a turn of a segment.
constexpr int kTriesMax = 100;

}  // namespace

Result<InspectedDisk> InspectedDisk::open(const std::string& path) {
  // The disk of a directory, as a configuration may name it.
  std::error_code ignored;
  const auto inside = std::filesystem::path(path) / "disk";
  const bool is_in_directory =
      std::filesystem::is_directory(path, ignored) && std::filesystem::exists(inside, ignored);
  auto file = open_file(is_in_directory ? inside.string() : path, FileUse::kLook);
  if (!file) return std::unexpected(file.error());
  return open(std::move(*file));
}

Result<InspectedDisk> InspectedDisk::open(std::unique_ptr<File> file) {
  const auto superblock = read_superblock(*file);
  if (!superblock) return std::unexpected(superblock.error());
  return InspectedDisk(std::move(file), *superblock);
}

std::vector<std::byte> InspectedDisk::purge_begins() const {
  std::vector<std::byte> begins;
  AlignedBuffer page(kPageBytes);
  for (const std::uint64_t offset : {std::uint64_t{0}, superblock_.purge_bytes}) {
    const auto bytes = page.first(kPageBytes);
    if (!file_->read(bytes, superblock_.purge_offset + offset)) continue;
    begins.insert(begins.end(), bytes.begin(), bytes.end());
  }
  return begins;
}

Result<void> InspectedDisk::read_unchanged(const std::function<Result<void>()>& read) const {
  for (int i = 1;; ++i) {
    const auto before = purge_begins();
    auto done = read();
    if (done || i == kTriesMax || purge_begins() == before) return done;
  }
}

Result<KnownPurges> InspectedDisk::read_purges() const {
  KnownPurges known;
  auto read = read_unchanged([&] {
    known = {};
    PurgeLog log(*file_, superblock_);
    auto loaded = log.load([&](const Purge& purge) {
      if (purge.kind != PurgeKind::kKey) return known.rules.push_back(purge);
      auto& version = known.keys[purge.key];
      version = std::max(version, purge.version);
    });
    known.entries = log.entries();
    known.used_bytes = log.used_bytes();
    return loaded;
  });
  if (!read) return std::unexpected(read.error());
  return known;
}

std::optional<SegmentHeader> InspectedDisk::read_header(std::uint32_t segment) const {
  AlignedBuffer page(kPageBytes);
  const Page bytes(page.first(kPageBytes));
  if (!file_->read(bytes, superblock_.segment_offset(segment))) return std::nullopt;
  return decode_segment_header(bytes, superblock_.uuid, segment);
}

std::vector<SegmentHeader> InspectedDisk::read_headers() const {
  std::vector<SegmentHeader> headers;
  for (std::uint32_t segment = 0; segment < superblock_.segments; ++segment) {
    if (const auto header = read_header(segment)) headers.push_back(*header);
  }
  std::ranges::sort(headers, std::greater(), &SegmentHeader::sequence);
  return headers;
}

bool InspectedDisk::is_overwritten(const SegmentHeader& header) const {
  AlignedBuffer page(kPageBytes);
  const Page bytes(page.first(kPageBytes));
  if (!file_->read(bytes, superblock_.segment_offset(header.segment))) return false;
  const auto now = decode_segment_header(bytes, superblock_.uuid, header.segment);
  if (now) return now->sequence != header.sequence;
  // It is erased before it is written again.
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

std::vector<const InspectedDisk*> pointers_to(const std::vector<InspectedDisk>& disks) {
  std::vector<const InspectedDisk*> pointers;
  for (const InspectedDisk& disk : disks) pointers.push_back(&disk);
  return pointers;
}

}  // namespace encore::disk

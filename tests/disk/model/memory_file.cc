#include "tests/disk/model/memory_file.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace encore::disk {
namespace {

void check_aligned(std::span<const std::byte> bytes, std::uint64_t offset) {
  ENCORE_CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % kIoAlign == 0 &&
                   bytes.size() % kIoAlign == 0 && offset % kIoAlign == 0,
               "reads and writes are aligned");
}

void put(Image& image, std::span<const std::byte> bytes, std::uint64_t offset) {
  if (image.size() < offset + bytes.size()) image.resize(offset + bytes.size());
  if (!bytes.empty()) std::memcpy(image.data() + offset, bytes.data(), bytes.size());
}

std::span<const std::byte> sector(const MemoryFile::Write& write, std::size_t number) {
  return std::span(write.bytes).subspan(number * MemoryFile::kSector, MemoryFile::kSector);
}

}  // namespace

Result<void> MemoryFile::read(std::span<std::byte> out, std::uint64_t offset) {
  check_aligned(out, offset);
  if (offset > seen_.size() || out.size() > seen_.size() - offset) {
    return fail("cannot read " + path_ + ": it ends before");
  }
  if (!out.empty()) std::memcpy(out.data(), seen_.data() + offset, out.size());
  return {};
}

Result<void> MemoryFile::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  check_aligned(bytes, offset);
  put(seen_, bytes, offset);
  unsynced_.push_back({offset, Image(bytes.begin(), bytes.end())});
  return {};
}

Result<void> MemoryFile::sync() {
  for (const Write& write : unsynced_) put(durable_, write.bytes, write.offset);
  unsynced_.clear();
  durable_.resize(std::max(durable_.size(), seen_.size()));
  return {};
}

Result<void> MemoryFile::allocate(std::uint64_t bytes) {
  // The size of a file is its file system's to journal.
  if (seen_.size() < bytes) {
    seen_.resize(bytes);
    durable_.resize(bytes);
  }
  return {};
}

Result<void> MemoryFile::truncate(std::uint64_t bytes) {
  if (auto synced = sync(); !synced) return synced;
  seen_.resize(bytes);
  durable_.resize(bytes);
  return {};
}

Image MemoryFile::crash_after(std::size_t writes) const { return crash_within(writes, 0); }

Image MemoryFile::crash_within(std::size_t writes, std::size_t sectors) const {
  Image image = durable_;
  for (std::size_t i = 0; i < writes; ++i) put(image, unsynced_[i].bytes, unsynced_[i].offset);
  for (std::size_t i = 0; i < sectors; ++i) {
    put(image, sector(unsynced_[writes], i), unsynced_[writes].offset + i * kSector);
  }
  return image;
}

Image MemoryFile::crash_anyhow(std::mt19937_64& random) const {
  Image image = durable_;
  for (const Write& write : unsynced_) {
    const auto fate = random() % 4;
    if (fate == 0) continue;
    const std::uint64_t kept = random();
    for (std::size_t i = 0; i < write.bytes.size() / kSector; ++i) {
      const bool is_kept = fate != 1 || (kept >> (i * 7 % 64) & 1U) != 0;
      if (is_kept) put(image, sector(write, i), write.offset + i * kSector);
    }
  }
  return image;
}

std::unexpected<Error> FaultFile::error() const {
  switch (fault_) {
    case Fault::kEio:
      return fail("Input/output error");
    case Fault::kEnospc:
      return fail("No space left on device");
    case Fault::kShort:
      break;
  }
  return fail("fewer bytes than asked for");
}

Result<void> FaultFile::read(std::span<std::byte> out, std::uint64_t offset) {
  if (!fails()) return file_.read(out, offset);
  // The contents of `out` are undefined then, and must not be read.
  std::ranges::fill(out, std::byte{0xa5});
  return error();
}

Result<void> FaultFile::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (!fails()) return file_.write(bytes, offset);
  const std::size_t half = bytes.size() / 2 / kIoAlign * kIoAlign;
  if (fault_ == Fault::kShort && half != 0) {
    if (auto written = file_.write(bytes.first(half), offset); !written) return written;
  }
  return error();
}

Result<void> FaultFile::sync() { return fails() ? error() : file_.sync(); }

Result<void> FaultFile::allocate(std::uint64_t bytes) {
  return fails() ? error() : file_.allocate(bytes);
}

Result<void> FaultFile::truncate(std::uint64_t bytes) {
  return fails() ? error() : file_.truncate(bytes);
}

}  // namespace encore::disk

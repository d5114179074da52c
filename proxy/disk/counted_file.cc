#include "proxy/disk/counted_file.h"

namespace encore::disk {

Result<void> CountedFile::counted(Count& count, const Operation& operation, Result<void> result) {
  count.done.fetch_add(1, std::memory_order_relaxed);
  if (result) {
    count.bytes.fetch_add(operation.bytes, std::memory_order_relaxed);
  } else {
    count.failed.fetch_add(1, std::memory_order_relaxed);
  }
  if (!operation.counts_in_row) return result;
  if (!result) {
    count.failed_in_row.fetch_add(1);
  } else if (count.failed_in_row.load(std::memory_order_relaxed) != 0) {
    // Mostly there was none, and readers share the line.
    count.failed_in_row.store(0);
  }
  return result;
}

Result<void> CountedFile::read(std::span<std::byte> out, std::uint64_t offset) {
  return counted(reads_, {out.size(), true}, file_->read(out, offset));
}

Result<void> CountedFile::read_two(std::span<std::byte> first, std::span<std::byte> second,
                                   std::uint64_t offset) {
  return counted(reads_, {first.size() + second.size(), true},
                 file_->read_two(first, second, offset));
}

Result<void> CountedFile::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  return counted(writes_, {bytes.size(), offset >= data_offset_}, file_->write(bytes, offset));
}

Result<void> CountedFile::sync() { return counted(writes_, {}, file_->sync()); }

}  // namespace encore::disk

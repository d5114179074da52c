// A file that counts what is done with it, and how often in a row the device has failed. Borrows
// nothing; thread-safe, as the file that it wraps.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "proxy/disk/file.h"

namespace encore::disk {

class CountedFile final : public File {
 public:
  explicit CountedFile(std::unique_ptr<File> file) : file_(std::move(file)) {}

  Result<void> read(std::span<std::byte> out, std::uint64_t offset) override;
  Result<void> read_two(std::span<std::byte> first, std::span<std::byte> second,
                        std::uint64_t offset) override;
  Result<void> write(std::span<const std::byte> bytes, std::uint64_t offset) override;
  Result<void> sync() override;
  Result<void> allocate(std::uint64_t bytes) override { return file_->allocate(bytes); }
  Result<void> truncate(std::uint64_t bytes) override { return file_->truncate(bytes); }
  Result<std::uint64_t> size() override { return file_->size(); }
  const std::string& path() const override { return file_->path(); }
  int descriptor() const override { return file_->descriptor(); }

  // Counts of reads, or of writes and syncs.
  struct Count {
    std::atomic<std::uint64_t> done = 0;
    std::atomic<std::uint64_t> bytes = 0;  // bytes of those that succeeded
    std::atomic<std::uint64_t> failed = 0;
    // The latest consecutive failures, of writes behind data_from() only: a purge log that can be
    // written says nothing of the segments.
    std::atomic<std::uint64_t> failed_in_row = 0;
  };
  // REQUIRES: not called while it is used.
  void data_from(std::uint64_t offset) { data_offset_ = offset; }
  const Count& reads() const { return reads_; }
  const Count& writes() const { return writes_; }

 private:
  struct Operation {
    std::uint64_t bytes = 0;
    bool counts_in_row = false;
  };
  static Result<void> counted(Count& count, const Operation& operation, Result<void> result);

  std::unique_ptr<File> file_;
  std::uint64_t data_offset_ = 0;
  Count reads_;
  Count writes_;
};

}  // namespace encore::disk

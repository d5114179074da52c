// A file whose device can be made to fail, and to work again. The wrapped file is borrowed and used
// by one thread at a time; thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "proxy/disk/file.h"

namespace encore::disk {

struct FileSwitch {
  std::atomic<bool> reads_fail = false;
  std::atomic<bool> writes_fail = false;  // and syncs
  std::atomic<bool> is_full = false;      // it promises no room, and is written nevertheless
  std::atomic<std::uint64_t> from = 0;    // only what is at this offset or behind it fails
  std::atomic<std::uint64_t> reads = 0;
};

class SwitchedFile final : public File {
 public:
  SwitchedFile(File& file, FileSwitch& state) : file_(file), state_(state) {}

  Result<void> read(std::span<std::byte> out, std::uint64_t offset) override {
    ++state_.reads;
    if (state_.reads_fail && offset >= state_.from) return fail("cannot read: it was told to fail");
    const std::scoped_lock lock(mutex_);
    return file_.read(out, offset);
  }
  Result<void> write(std::span<const std::byte> bytes, std::uint64_t offset) override {
    if (state_.writes_fail && offset >= state_.from) {
      return fail("cannot write: it was told to fail");
    }
    const std::scoped_lock lock(mutex_);
    return file_.write(bytes, offset);
  }
  Result<void> sync() override {
    if (state_.writes_fail && state_.from == 0) return fail("cannot sync: told to fail");
    const std::scoped_lock lock(mutex_);
    return file_.sync();
  }
  Result<void> allocate(std::uint64_t bytes) override {
    return state_.is_full ? fail("no room: it was told to be full") : file_.allocate(bytes);
  }
  Result<void> truncate(std::uint64_t bytes) override { return file_.truncate(bytes); }
  Result<std::uint64_t> size() override { return file_.size(); }
  const std::string& path() const override { return file_.path(); }

 private:
  File& file_;
  FileSwitch& state_;
  std::mutex mutex_;
};

}  // namespace encore::disk

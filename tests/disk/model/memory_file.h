// A file in memory that keeps apart what is durable: what was written since the last sync is known
// write by write, so that a crash may keep any of it. One that fails at the Nth operation. Neither
// is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "proxy/disk/file.h"

namespace encore::disk {

using Image = std::vector<std::byte>;

class MemoryFile final : public File {
 public:
  // Writes are durable only after a sync. `image` is durable already.
  explicit MemoryFile(Image image = {}) : durable_(image), seen_(std::move(image)) {}

  Result<void> read(std::span<std::byte> out, std::uint64_t offset) override;
  Result<void> write(std::span<const std::byte> bytes, std::uint64_t offset) override;
  Result<void> sync() override;
  Result<void> allocate(std::uint64_t bytes) override;
  Result<void> truncate(std::uint64_t bytes) override;
  Result<std::uint64_t> size() override { return seen_.size(); }
  const std::string& path() const override { return path_; }

  struct Write {
    std::uint64_t offset = 0;
    Image bytes;
  };
  const std::vector<Write>& unsynced() const { return unsynced_; }
  // As a process sees it.
  const Image& image() const { return seen_; }
  Image& image() { return seen_; }

  // --- States that a crash may leave -------------------------------------------------------------

  static constexpr std::size_t kSector = 512;  // never torn
  // The first `writes` of what is unsynced.
  Image crash_after(std::size_t writes) const;
  // Those, and of the next write the first `sectors`.
  Image crash_within(std::size_t writes, std::size_t sectors) const;
  // For each unsynced write all, nothing, or any of its sectors, in any order.
  Image crash_anyhow(std::mt19937_64& random) const;

 private:
  std::string path_ = "/memory";
  Image durable_;
  Image seen_;
  std::vector<Write> unsynced_;
};

enum class Fault : std::uint8_t { kEio, kEnospc, kShort };

// Fails the operation number `at` (0, 1, ...) and, where `lasting`, all after it. A write that is
// short leaves its first half.
class FaultFile final : public File {
 public:
  FaultFile(File& file, std::uint64_t at, Fault fault, bool lasting)
      : file_(file), at_(at), fault_(fault), lasting_(lasting) {}

  Result<void> read(std::span<std::byte> out, std::uint64_t offset) override;
  Result<void> write(std::span<const std::byte> bytes, std::uint64_t offset) override;
  Result<void> sync() override;
  Result<void> allocate(std::uint64_t bytes) override;
  Result<void> truncate(std::uint64_t bytes) override;
  Result<std::uint64_t> size() override { return file_.size(); }
  const std::string& path() const override { return file_.path(); }

  // Whether it has come so far.
  bool has_failed() const { return operations_ > at_; }

 private:
  bool fails() {
    const std::uint64_t number = operations_++;
    return number == at_ || (lasting_ && number > at_);
  }
  std::unexpected<Error> error() const;

  File& file_;
  std::uint64_t at_;
  Fault fault_;
  bool lasting_;
  std::uint64_t operations_ = 0;
};

}  // namespace encore::disk

// Disks of the crash model, to be looked at.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "proxy/disk/cli/inspected_disk.h"
#include "tests/catch.h"
#include "tests/disk/model/driver.h"
#include "tests/disk/model/history.h"
#include "tests/disk/model/memory_file.h"
#include "tests/disk/model/watched_file.h"

namespace encore::disk {

// 12 segments of 64 KiB: those of a driver are soon written around.
inline constexpr DriverOptions kDisk{.disk_bytes = (256U + 12 * 64U) << 10U,
                                     .segment_bytes = 64U << 10U};

// A file that another has: to be read, and told of before each read.
class Shared final : public File {
 public:
  explicit Shared(File& file, std::function<void()> before_read = {})
      : file_(file), before_read_(std::move(before_read)) {}
  Result<void> read(std::span<std::byte> out, std::uint64_t offset) override {
    if (before_read_) before_read_();
    return file_.read(out, offset);
  }
  Result<void> write(std::span<const std::byte> /*bytes*/, std::uint64_t /*offset*/) override {
    FAIL("who looks has written");
    return {};
  }
  Result<void> sync() override { return file_.sync(); }
  Result<void> allocate(std::uint64_t /*bytes*/) override {
    FAIL("who looks has allocated");
    return {};
  }
  Result<void> truncate(std::uint64_t /*bytes*/) override {
    FAIL("who looks has truncated");
    return {};
  }
  Result<std::uint64_t> size() override { return file_.size(); }
  const std::string& path() const override { return file_.path(); }

 private:
  File& file_;
  std::function<void()> before_read_;
};

inline InspectedDisk looked(File& file, std::function<void()> before_read = {}) {
  auto disk = InspectedDisk::open(std::make_unique<Shared>(file, std::move(before_read)));
  REQUIRE(disk);
  return std::move(*disk);
}

// Whether the model's purge is of it.
inline bool is_purged_in_model(const Purge& purge, const RecordFields& fields,
                               const RecordText& text) {
  return is_purged_by(purge, fields, text.key, text.meta);
}

}  // namespace encore::disk

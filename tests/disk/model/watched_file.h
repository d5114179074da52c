// A file that tells what is done with it, and one that is an image to be looked at. Neither is
// thread-safe.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "proxy/disk/file.h"
#include "tests/disk/model/memory_file.h"

namespace encore::disk {

class WatchedFile final : public File {
 public:
  explicit WatchedFile(File& file) : file_(file) {}

  Result<void> read(std::span<std::byte> out, std::uint64_t offset) override {
    if (on_read) on_read(out.size());
    return file_.read(out, offset);
  }
  Result<void> write(std::span<const std::byte> bytes, std::uint64_t offset) override {
    auto written = file_.write(bytes, offset);
    if (on_write) on_write();
    return written;
  }
  Result<void> sync() override {
    auto synced = file_.sync();
    if (synced && on_synced) on_synced();
    return synced;
  }
  Result<void> allocate(std::uint64_t bytes) override { return file_.allocate(bytes); }
  Result<void> truncate(std::uint64_t bytes) override { return file_.truncate(bytes); }
  Result<std::uint64_t> size() override { return file_.size(); }
  const std::string& path() const override { return file_.path(); }

  std::function<void(std::size_t bytes)> on_read;  // before it
  std::function<void()> on_write;                  // after it, failed or not
  std::function<void()> on_synced;

 private:
  File& file_;
};

// Borrows the image; refuses to change it.
class ImageFile final : public File {
 public:
  explicit ImageFile(const Image& image) : image_(image) {}

  Result<void> read(std::span<std::byte> out, std::uint64_t offset) override {
    if (offset > image_.size() || out.size() > image_.size() - offset) {
      return fail("cannot read: it ends before");
    }
    if (!out.empty()) std::memcpy(out.data(), image_.data() + offset, out.size());
    return {};
  }
  Result<void> write(std::span<const std::byte> /*bytes*/, std::uint64_t /*offset*/) override {
    return fail("only to be read");
  }
  Result<void> sync() override { return fail("only to be read"); }
  Result<void> allocate(std::uint64_t /*bytes*/) override { return fail("only to be read"); }
  Result<void> truncate(std::uint64_t /*bytes*/) override { return fail("only to be read"); }
  Result<std::uint64_t> size() override { return image_.size(); }
  const std::string& path() const override { return path_; }

 private:
  const Image& image_;
  std::string path_ = "/image";
};

}  // namespace encore::disk

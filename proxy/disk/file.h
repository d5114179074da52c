// File: what the disk tier asks of the system, and the one place where its faults come in. Nothing
// is buffered above it: what is written goes to the device where the file system lets it.
//
// Thread-safe: each call says where, and calls may overlap in time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"

namespace encore::disk {

// Alignment of the offset and length of each read and write, in memory too, so that a file may
// bypass the page cache on any device.
inline constexpr std::size_t kIoAlign = 4096;

class File {
 public:
  virtual ~File() = default;

  // Fills `out` from `offset` on. REQUIRES: aligned. Errors: the system's; the file ends before.
  virtual Result<void> read(std::span<std::byte> out, std::uint64_t offset) = 0;
  // The same into two pieces of memory, the second for the bytes after the first: in one call if
  // the system can.
  virtual Result<void> read_two(std::span<std::byte> first, std::span<std::byte> second,
                                std::uint64_t offset) {
    if (auto done = read(first, offset); !done) return done;
    return read(second, offset + first.size());
  }
  // Errors: the system's; whatever part of it is then on the disk. REQUIRES: aligned.
  virtual Result<void> write(std::span<const std::byte> bytes, std::uint64_t offset) = 0;
  // Makes durable what was written before the call. After an error nothing is known of that, and a
  // later success does not say it either.
  virtual Result<void> sync() = 0;
  // Makes sure of room for the first `bytes`, and of a size of as much at least; what is there
  // stays, what is new reads as zeros. Errors: no room; a device that is smaller.
  virtual Result<void> allocate(std::uint64_t bytes) = 0;
  // Cuts off everything beyond `bytes`. Has no effect on a device.
  virtual Result<void> truncate(std::uint64_t bytes) = 0;
  virtual Result<std::uint64_t> size() = 0;
  // For messages.
  virtual const std::string& path() const = 0;
  // The open file, for another process that is to have it with its lock; -1: there is none.
  virtual int descriptor() const { return -1; }
};

enum class FileUse : std::uint8_t {
  kMake,  // to read and write; made where there is none
  kKeep,  // to read and write what is there
  kLook,  // to read while another process has it
};

// A regular file of this user's alone (mode 0600), or a block device; taken for this process as
// long as it lives. Bypasses the page cache; where the file system refuses that, what was written
// is dropped from it again at each sync. Errors show the path and what to do: no such file, not to
// be opened, no file or device, another user's, taken by another process.
Result<std::unique_ptr<File>> open_file(const std::string& path, FileUse use);
// The same of a file that another process has opened and handed over with its lock. Takes the
// descriptor over, and leaves it as it is: the other process may use it, too.
Result<std::unique_ptr<File>> adopt_file(const std::string& path, int descriptor);

}  // namespace encore::disk

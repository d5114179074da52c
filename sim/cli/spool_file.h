// SpoolFile: bytes on disk for as long as a command runs. The file has no name from the start: it
// is gone when the process is, however that ends. Reading is thread-safe, writing is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace encore::sim {

class SpoolFile {
 public:
  // In $TMPDIR, or /tmp. Errors: the directory is missing or cannot be written.
  static Result<SpoolFile> create();
  SpoolFile(SpoolFile&& other) noexcept;
  SpoolFile& operator=(SpoolFile&& other) noexcept;
  ~SpoolFile();

  // Errors: a full disk, a limit on the size of files; the message says where the spool is.
  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  // Errors: the file is shorter than that, reading.
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  SpoolFile(int file, std::string directory) : file_(file), directory_(std::move(directory)) {}

  int file_ = -1;
  std::string directory_;
};

}  // namespace encore::sim

// ByteSource: the bytes of a file or of standard input, decompressed on the way. Confined to one
// thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/cli/monitor.h"
#include "base/error.h"

namespace encore::sim {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads at least one byte unless it is the end (0) or `out` is empty. Errors: reading failed, the
  // compressed data is damaged or cut off, the monitor stopped it.
  virtual Result<std::size_t> read(std::span<char> out) = 0;
};

// A file, or standard input for "-". gzip, xz and zstd are known by their first bytes. `monitor`,
// where there is one, is borrowed: it counts the bytes of the file, compressed as they are, and
// stops a read that waits for a pipe. Errors: it cannot be opened, or is a directory; the message
// has the path and why.
Result<std::unique_ptr<ByteSource>> open_bytes(const std::string& path, Monitor* monitor = nullptr);
// Begins the phase of the monitor's in which these are read: as long as all of them where their
// sizes are known.
void begin_reading(Monitor& monitor, const std::vector<std::string>& paths);

// Decompressors over another source, which they own.
std::unique_ptr<ByteSource> make_gzip_source(std::unique_ptr<ByteSource> compressed);
std::unique_ptr<ByteSource> make_xz_source(std::unique_ptr<ByteSource> compressed);
std::unique_ptr<ByteSource> make_zstd_source(std::unique_ptr<ByteSource> compressed);

}  // namespace encore::sim

// SourceStream: a ByteSource as a standard stream, which ends where the source does or fails.
// Confined to one thread.
#pragma once

#include <istream>
#include <memory>
#include <streambuf>
#include <vector>

#include "sim/trace/byte_source.h"

namespace encore::sim {

class SourceStream final : private std::streambuf, public std::istream {
 public:
  explicit SourceStream(std::unique_ptr<ByteSource> source);

 private:
  int underflow() override;

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
};

}  // namespace encore::sim

// SourceStream: a ByteSource as a standard stream, which ends where the source does or fails; which
// of both it was, error() tells.
// Confined to one thread.
#pragma once

#include <istream>
#include <memory>
#include <optional>
#include <streambuf>
#include <vector>

#include "sim/trace/byte_source.h"

namespace encore::sim {

class SourceStream final : private std::streambuf, public std::istream {
 public:
  explicit SourceStream(std::unique_ptr<ByteSource> source);
  // Why the source failed; nothing where it has not.
  const std::optional<Error>& error() const { return error_; }

 private:
  int underflow() override;

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  std::optional<Error> error_;
};

}  // namespace encore::sim

#include "sim/trace/source_stream.h"

#include <utility>

namespace encore::sim {

SourceStream::SourceStream(std::unique_ptr<ByteSource> source)
    : std::istream(nullptr), source_(std::move(source)), buffer_(64 * 1024) {
  rdbuf(this);
}

int SourceStream::underflow() {
  const auto count = source_->read(buffer_);
  if (!count) {
    error_ = count.error();
  }
  if (!count || *count == 0) {
    return std::streambuf::traits_type::eof();
  }
  setg(buffer_.data(), buffer_.data(), buffer_.data() + *count);
  return std::streambuf::traits_type::to_int_type(*gptr());
}

}  // namespace encore::sim

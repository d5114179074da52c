#include "sim/trace/input.h"

#include <cstring>
#include <utility>

namespace encore::sim {

Input::Input(std::unique_ptr<ByteSource> source, Monitor* monitor)
    : source_(std::move(source)), monitor_(monitor), buffer_(kLineMax + 256 * 1024) {}

Result<bool> Input::fill() {
  if (begin_ != 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const auto count = source_->read(std::span(buffer_).subspan(end_));
  if (!count && monitor_ != nullptr && monitor_->stopped()) {
    interrupted_ = true;
    return false;
  }
  if (!count) {
    return std::unexpected(count.error());
  }
  end_ += *count;
  return *count != 0;
}

Result<bool> Input::next_line(std::string_view& line) {
  line_number_ += within_line_ ? 0 : 1;
  within_line_ = false;
  std::size_t searched = 0;
  while (true) {
    const std::string_view have = buffered();
    const std::size_t newline = have.find('\n', searched);
    if (newline != std::string_view::npos) {
      line = have.substr(0, newline);
      begin_ += newline + 1;
      break;
    }
    searched = have.size();
    if (have.size() >= kLineMax) {
      // No format has such lines: the pieces will be counted as bad ones.
      line = have.substr(0, kLineMax);
      begin_ += kLineMax;
      within_line_ = true;
      break;
    }
    const auto more = fill();
    if (!more) {
      return more;
    }
    if (!*more) {
      line = interrupted_ ? std::string_view() : buffered();
      begin_ = end_;
      if (line.empty()) {
        return false;
      }
      break;
    }
  }
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return true;
}

Result<std::string_view> Input::peek(std::size_t size) {
  while (end_ - begin_ < size) {
    const auto more = fill();
    if (!more) {
      return std::unexpected(more.error());
    }
    if (!*more) {
      break;
    }
  }
  return buffered().substr(0, size);
}

Result<std::string_view> Input::next_bytes(std::size_t size) {
  auto bytes = peek(size);
  if (bytes) {
    begin_ += bytes->size();
  }
  return bytes;
}

}  // namespace encore::sim

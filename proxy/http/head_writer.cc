#include "proxy/http/head_writer.h"

#include <algorithm>
#include <charconv>

namespace encore::http {
namespace {

constexpr std::size_t kDigitsMax = 20;

char* put(char* out, std::string_view text) {
  return std::copy(text.begin(), text.end(), out);  // a text of nothing may stand nowhere
}

}  // namespace

void HeadWriter::grow(std::size_t bytes) { out_.resize(2 * out_.size() + bytes); }

void HeadWriter::number(std::uint64_t value) {
  char* const at = room(kDigitsMax);
  written(static_cast<std::size_t>(std::to_chars(at, at + kDigitsMax, value).ptr - at));
}

void HeadWriter::field(std::string_view name, std::string_view value) {
  const std::size_t bytes = name.size() + value.size() + 4;
  char* at = put(room(bytes), name);
  at = put(at, ": ");
  at = put(at, value);
  put(at, "\r\n");
  written(bytes);
}

void HeadWriter::field(std::string_view name, std::uint64_t value) {
  text(name);
  text(": ");
  number(value);
  text("\r\n");
}

void HeadWriter::status_line(unsigned status, std::string_view reason) {
  char* at = put(room(13), "HTTP/1.1 ");
  *at++ = static_cast<char>('0' + status / 100 % 10);
  *at++ = static_cast<char>('0' + status / 10 % 10);
  *at++ = static_cast<char>('0' + status % 10);
  *at = ' ';
  written(13);
  text(reason);
  text("\r\n");
}

void FieldCopier::flush() {
  if (begin_ == nullptr) return;
  const auto bytes = static_cast<std::size_t>(end_ - begin_);
  char* const at = put(out_.room(bytes + 2), {begin_, bytes});
  put(at, "\r\n");
  out_.written(bytes + 2);
  begin_ = end_ = nullptr;
}

}  // namespace encore::http

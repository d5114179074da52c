#include "proxy/http/head_writer.h"

#include <array>
#include <charconv>

namespace encore::http {
namespace {

constexpr std::size_t kDigitsMax = 20;

}  // namespace

void HeadWriter::grow(std::size_t bytes) { make_room(2 * out_.size() + bytes); }

void HeadWriter::number(std::uint64_t value) {
  char* const at = room(kDigitsMax);
  written(static_cast<std::size_t>(std::to_chars(at, at + kDigitsMax, value).ptr - at));
}

void HeadWriter::field(std::string_view name, std::uint64_t value) {
  texts(name, ": ");
  number(value);
  text("\r\n");
}

void HeadWriter::status_line(unsigned status, std::string_view reason) {
  const std::array<char, 4> code = {static_cast<char>('0' + status / 100 % 10),
                                    static_cast<char>('0' + status / 10 % 10),
                                    static_cast<char>('0' + status % 10), ' '};
  texts("HTTP/1.1 ", std::string_view(code.data(), code.size()), reason, "\r\n");
}

void FieldCopier::flush() {
  if (begin_ == nullptr) return;
  out_.texts(std::string_view(begin_, end_), "\r\n");
  begin_ = end_ = nullptr;
}

}  // namespace encore::http

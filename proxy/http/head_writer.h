// HeadWriter: writes a head at the end of a text, piece by piece. The text is given the room that
// is expected once, so that each piece costs its copy; where it was too little, it grows. Confined
// to the call that makes it.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/http/message.h"

namespace encore::http {

class HeadWriter {
 public:
  // `out` is borrowed, and not to be touched by others before the writer ends.
  HeadWriter(std::string& out, std::size_t expected_bytes) : out_(out), size_(out.size()) {
    make_room(size_ + expected_bytes);
  }
  // The text is then as long as what was written.
  ~HeadWriter() { out_.resize(size_); }
  HeadWriter(const HeadWriter&) = delete;
  HeadWriter& operator=(const HeadWriter&) = delete;

  // With what stood in the text before.
  std::size_t size() const { return size_; }

  void text(std::string_view text) { texts(text); }
  // Appends the texts in order. The length of a literal is known at compile time only if this is
  // inlined; else it is counted each time.
  [[gnu::always_inline]] void texts(std::convertible_to<std::string_view> auto const&... parts) {
    char* at = room((std::string_view(parts).size() + ...));
    ((at = put(at, parts)), ...);
    size_ = static_cast<std::size_t>(at - out_.data());
  }
  void number(std::uint64_t value);
  // A field line with its CRLF.
  void field(std::string_view name, std::string_view value) { texts(name, ": ", value, "\r\n"); }
  void field(std::string_view name, std::uint64_t value);
  // "HTTP/1.1 404 Not Found" and CRLF. REQUIRES: a status of three digits.
  void status_line(unsigned status, std::string_view reason);

  // For those who write by themselves: room for as many bytes, of which as many are kept as
  // written() says.
  char* room(std::size_t bytes) {
    if (out_.size() - size_ < bytes) [[unlikely]] {
      grow(bytes);
    }
    return out_.data() + size_;
  }
  void written(std::size_t bytes) { size_ += bytes; }

 private:
  void grow(std::size_t bytes);
  // Without zeros, which would be written over.
  void make_room(std::size_t size) {
    out_.resize_and_overwrite(size, [](char*, std::size_t all) { return all; });
  }
  // A text of nothing may stand nowhere.
  static char* put(char* out, std::string_view text) {
    return std::copy(text.begin(), text.end(), out);
  }

  std::string& out_;
  std::size_t size_;
};

// Writes lines of a head that was parsed as HeadWriter::field() does. Those that stand behind one
// another as they are to be written go in one piece.
class FieldCopier {
 public:
  // `out` is borrowed, and not to be written to by others before the copier ends.
  explicit FieldCopier(HeadWriter& out) : out_(out) {}
  ~FieldCopier() { flush(); }
  FieldCopier(const FieldCopier&) = delete;
  FieldCopier& operator=(const FieldCopier&) = delete;

  void add(const Field& field) {
    const char* const name_end = field.name.data() + field.name.size();
    // The parser has seen a colon behind the name, and what is two bytes behind it is the value.
    if (field.value.data() != name_end + 2 || name_end[1] != ' ') {
      flush();
      out_.field(field.name, field.value);
      return;
    }
    if (!follows(field)) {
      flush();
      begin_ = field.name.data();
    }
    end_ = field.value.data() + field.value.size();
  }
  // A line that is written otherwise.
  void add(std::string_view name, std::string_view value) {
    flush();
    out_.field(name, value);
  }
  void add(std::string_view name, std::uint64_t value) {
    flush();
    out_.field(name, value);
  }
  // Returns the size of the writer's text with the lines that are still to be written.
  std::size_t size() const {
    return out_.size() + (begin_ == nullptr ? 0 : static_cast<std::size_t>(end_ + 2 - begin_));
  }

 private:
  bool follows(const Field& field) const {
    return end_ != nullptr && field.name.data() == end_ + 2 && end_[0] == '\r' && end_[1] == '\n';
  }
  void flush();

  HeadWriter& out_;
  const char* begin_ = nullptr;  // bytes still to be written; null: none
  const char* end_ = nullptr;    // before its last CRLF
};

}  // namespace encore::http

// Reading of comma lists, tokens and quoted strings (RFC 9110 5.6). Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace encore::http {

// Space and tab.
constexpr bool is_ows(char c) noexcept { return c == ' ' || c == '\t'; }

constexpr std::string_view trim_ows(std::string_view text) noexcept {
  while (!text.empty() && is_ows(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_ows(text.back())) text.remove_suffix(1);
  return text;
}

constexpr char to_lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Equality without regard to ASCII case. REQUIRES: `lower` in lower case.
constexpr bool equals_lower(std::string_view text, std::string_view lower) noexcept {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (to_lower(text[i]) != lower[i]) return false;
  }
  return true;
}
// The same for two texts in any case.
constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (to_lower(a[i]) != to_lower(b[i])) return false;
  }
  return true;
}

// A tchar of RFC 9110 5.6.2.
bool is_token_char(char c) noexcept;
// One or more tchars.
bool is_token(std::string_view text) noexcept;

// Reads the members of one field line's comma list. Empty members are skipped, white space around
// members removed; a comma within a quoted string (backslashes counted) separates nothing.
class ListReader {
 public:
  explicit ListReader(std::string_view value) noexcept : rest_(value) {}
  // False at the end.
  bool next(std::string_view& member) noexcept;

 private:
  std::string_view rest_;
};

// The content of a quoted string, unescaped, into `out` (cleared first). False if `text` is not
// exactly one well-formed quoted string.
bool unquote(std::string_view text, std::string& out);

}  // namespace encore::http

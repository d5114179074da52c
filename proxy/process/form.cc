#include "proxy/process/form.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace encore::server {
namespace {

Result<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    unsigned value = 0;
    const char* begin = text.data() + i + 1;
    const char* end = begin + std::min<std::size_t>(2, text.size() - i - 1);
    if (end - begin != 2 || std::from_chars(begin, end, value, 16).ptr != end) {
      return fail("an invalid escape in \"" + std::string(text) + "\"");
    }
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> read_form(std::string_view form) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!form.empty()) {
    const std::string_view pair = form.substr(0, form.find('&'));
    form.remove_prefix(std::min(pair.size() + 1, form.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto value = decoded(pair.substr(std::min(equals + 1, pair.size())));
    if (!value) return std::unexpected(value.error());
    pairs.emplace_back(pair.substr(0, equals), std::move(*value));
  }
  return pairs;
}

void append_form(std::string_view name, std::string_view value, std::string& out) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (!out.empty()) out += '&';
  out += name;
  out += '=';
  for (const char c : value) {
    if (is_unreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
}

}  // namespace encore::server

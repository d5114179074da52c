#include "proxy/http/list.h"

#include <algorithm>
#include <array>

namespace encore::http {
namespace {

consteval std::array<bool, 256> make_token_table() {
  std::array<bool, 256> table{};
  for (std::size_t c = 0; c < table.size(); ++c) {
    table[c] = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  }
  for (const char c : std::string_view("!#$%&'*+-.^_`|~"))
    table[static_cast<unsigned char>(c)] = true;
  return table;
}
constexpr std::array<bool, 256> kTokenTable = make_token_table();

}  // namespace

bool is_token_char(char c) noexcept { return kTokenTable[static_cast<unsigned char>(c)]; }

bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, is_token_char);
}

bool ListReader::next(std::string_view& member) noexcept {
  while (!rest_.empty() && (is_ows(rest_.front()) || rest_.front() == ',')) rest_.remove_prefix(1);
  if (rest_.empty()) return false;
  // Most members have no quotes.
  std::size_t at = 0;
  while (at < rest_.size() && rest_[at] != ',' && rest_[at] != '"') ++at;
  bool quoted = false;
  for (; at < rest_.size(); ++at) {
    const char c = rest_[at];
    if (c == '"') {
      quoted = !quoted;
    } else if (c == '\\' && quoted) {
      ++at;
    } else if (c == ',' && !quoted) {
      break;
    }
  }
  at = std::min(at, rest_.size());
  member = trim_ows(rest_.substr(0, at));
  rest_.remove_prefix(at);
  return true;
}

bool unquote(std::string_view text, std::string& out) {
  out.clear();
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return false;
  text = text.substr(1, text.size() - 2);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') return false;
    if (text[i] == '\\' && ++i == text.size()) return false;
    out.push_back(text[i]);
  }
  return true;
}

}  // namespace encore::http

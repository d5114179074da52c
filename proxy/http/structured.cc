#include "proxy/http/structured.h"

#include <algorithm>

#include "proxy/http/list.h"

namespace encore::http {
namespace {

constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
constexpr bool is_alpha(char c) noexcept { return is_lower(to_lower(c)); }

// Recursive descent over RFC 8941 4.2. After a mismatch nothing more is read.
class Reader {
 public:
  explicit Reader(std::string_view text) noexcept : text_(text) {}

  std::optional<std::vector<StructuredMember>> dictionary() {
    std::vector<StructuredMember> members;
    skip(" ");
    while (text_.find_last_not_of(' ') != std::string_view::npos) {
      StructuredMember member;
      if (!read_member(member)) return std::nullopt;
      const auto same = std::ranges::find(members, member.key, &StructuredMember::key);
      if (same != members.end()) {
        *same = member;
      } else if (members.size() < kMembersMax) {
        members.push_back(member);
      } else {
        return std::nullopt;
      }
      skip(" \t");
      if (text_.empty()) return members;
      if (!accept(',')) return std::nullopt;
      skip(" \t");
      if (text_.empty()) return std::nullopt;  // a comma with nothing behind it
    }
    return members;
  }

  // `last`, if it is not null, receives the last member's parameters.
  bool list(ListEnd* last = nullptr) {
    skip(" ");
    while (text_.find_last_not_of(' ') != std::string_view::npos) {
      StructuredMember member;
      if (last != nullptr) *last = {.has_member = true, .parameters = {}};
      if (!read_value(member, last)) return false;
      skip(" \t");
      if (text_.empty()) return true;
      if (!accept(',')) return false;
      skip(" \t");
      if (text_.empty()) return false;  // a comma with nothing behind it
    }
    return true;
  }

 private:
  char peek() const noexcept { return text_.empty() ? '\0' : text_.front(); }
  bool accept(char c) noexcept {
    if (peek() != c || text_.empty()) return false;
    text_.remove_prefix(1);
    return true;
  }
  void skip(std::string_view set) noexcept {
    text_.remove_prefix(std::min(text_.find_first_not_of(set), text_.size()));
  }
  std::string_view take(std::size_t size) noexcept {
    const std::string_view taken = text_.substr(0, size);
    text_.remove_prefix(size);
    return taken;
  }

  bool read_key(std::string_view& key) noexcept {
    if (!is_lower(peek()) && peek() != '*') return false;
    const auto* end = std::ranges::find_if_not(text_, [](char c) {
      return is_lower(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '*';
    });
    key = take(static_cast<std::size_t>(end - text_.begin()));
    return true;
  }

  bool read_member(StructuredMember& member) {
    if (!read_key(member.key)) return false;
    if (!accept('=')) {
      member.boolean = true;
      return read_parameters();
    }
    return read_value(member);
  }

  bool read_value(StructuredMember& member, ListEnd* end = nullptr) {
    return (peek() == '(' ? read_inner_list(member) : read_bare_item(member)) &&
           read_parameters(end);
  }

  bool read_parameters(ListEnd* end = nullptr) {
    while (accept(';')) {
      skip(" ");
      StructuredMember parameter;
      if (!read_key(parameter.key)) return false;
      parameter.boolean = true;
      if (accept('=') && !read_bare_item(parameter)) return false;
      if (end != nullptr && !keep(parameter, end->parameters)) return false;
    }
    return true;
  }
  static bool keep(const StructuredMember& parameter, std::vector<StructuredMember>& parameters) {
    const auto same = std::ranges::find(parameters, parameter.key, &StructuredMember::key);
    if (same != parameters.end()) {
      *same = parameter;
      return true;
    }
    parameters.push_back(parameter);
    return parameters.size() <= kParametersMax;
  }

  bool read_inner_list(StructuredMember& member) {
    member.type = StructuredMember::Type::kList;
    accept('(');
    while (true) {
      skip(" ");
      if (accept(')')) return true;
      StructuredMember item;
      if (!read_bare_item(item) || !read_parameters()) return false;
      if (peek() != ' ' && peek() != ')') return false;
    }
  }

  bool read_bare_item(StructuredMember& item) {
    const char c = peek();
    if (c == '-' || is_digit(c)) return read_number(item);
    if (c == '"') return read_string(item);
    if (c == '?') return read_boolean(item);
    if (c == ':') return read_bytes(item);
    return read_token(item);
  }

  bool read_number(StructuredMember& item) noexcept {
    const bool negative = accept('-');
    const std::size_t whole = count_digits();
    if (whole == 0 || whole > 15) return false;
    for (const char c : take(whole)) item.integer = item.integer * 10 + (c - '0');
    if (negative) item.integer = -item.integer;
    item.type = StructuredMember::Type::kInteger;
    if (!accept('.')) return true;
    item.type = StructuredMember::Type::kDecimal;
    const std::size_t fraction = count_digits();
    take(fraction);
    return whole <= 12 && fraction >= 1 && fraction <= 3;
  }
  std::size_t count_digits() const noexcept {
    return std::min(text_.find_first_not_of("0123456789"), text_.size());
  }

  bool read_string(StructuredMember& item) noexcept {
    item.type = StructuredMember::Type::kString;
    for (std::size_t i = 1; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '"') {
        item.text = text_.substr(1, i - 1);
        text_.remove_prefix(i + 1);
        return true;
      }
      if (c == '\\' && (++i == text_.size() || (text_[i] != '"' && text_[i] != '\\'))) return false;
      if (c < 0x20 || c > 0x7e) return false;
    }
    return false;
  }

  bool read_boolean(StructuredMember& item) noexcept {
    item.type = StructuredMember::Type::kBoolean;
    accept('?');
    item.boolean = peek() == '1';
    return accept('0') || accept('1');
  }

  bool read_bytes(StructuredMember& item) noexcept {
    item.type = StructuredMember::Type::kBytes;
    accept(':');
    const std::size_t size = text_.find(':');
    if (size == std::string_view::npos) return false;
    const std::string_view content = take(size);
    accept(':');
    return std::ranges::all_of(content, [](char c) {
      return is_alpha(c) || is_digit(c) || c == '+' || c == '/' || c == '=';
    });
  }

  bool read_token(StructuredMember& item) noexcept {
    item.type = StructuredMember::Type::kToken;
    if (!is_alpha(peek()) && peek() != '*') return false;
    const auto* end = std::ranges::find_if_not(
        text_, [](char c) { return is_token_char(c) || c == ':' || c == '/'; });
    item.text = take(static_cast<std::size_t>(end - text_.begin()));
    return true;
  }

  std::string_view text_;
};

}  // namespace

std::optional<std::vector<StructuredMember>> parse_dictionary(std::string_view value) {
  return Reader(value).dictionary();
}

bool is_structured_list(std::string_view value) { return Reader(value).list(); }

std::optional<ListEnd> parameters_of_last(std::string_view value) {
  ListEnd end;
  return Reader(value).list(&end) ? std::optional(std::move(end)) : std::nullopt;
}

}  // namespace encore::http

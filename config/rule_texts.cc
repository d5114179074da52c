#include "config/rule_texts.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "base/units.h"
#include "config/texts.h"

namespace encore::config {
namespace {

constexpr std::uint32_t kStatusMin = 400;
constexpr std::uint32_t kStatusMax = 599;
constexpr std::size_t kNamesMax = 64;

bool read_status(std::string_view text, std::uint32_t& status) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), status);
  return fault == std::errc{} && end == text.data() + text.size() && text.size() == 3;
}

// "404", "5xx", "400-499".
bool read_statuses(std::string_view text, StatusLife& life) {
  constexpr std::uint32_t kClass = 100;
  if (text == "4xx" || text == "5xx") {
    life.first = static_cast<std::uint32_t>(text.front() - '0') * kClass;
    life.last = life.first + kClass - 1;
    return true;
  }
  const std::size_t dash = text.find('-');
  if (!read_status(text.substr(0, dash), life.first)) return false;
  life.last = life.first;
  if (dash != std::string_view::npos && !read_status(text.substr(dash + 1), life.last)) {
    return false;
  }
  return life.first >= kStatusMin && life.last <= kStatusMax && life.first <= life.last;
}

// "a,b" with each name as `check` wants it. Errors: none, too many, one that is none.
Result<std::vector<std::string>> read_names(std::string_view text,
                                            Result<std::string> (*check)(std::string_view)) {
  std::vector<std::string> names;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view name = text.substr(0, comma);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    auto checked = check(name);
    if (!checked) return std::unexpected(checked.error());
    names.push_back(std::move(*checked));
    if (comma == text.size()) break;
    text.remove_prefix(comma + 1);
  }
  if (names.size() > kNamesMax) return fail("has too many names");
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

Result<std::string> check_cookie_name(std::string_view text) {
  // In the name of a variant a comma stands between two; a token has none (RFC 6265 4.1.1).
  auto name = check_field_name(text);
  if (!name) return fail("is not the name of a cookie");
  if (text.find('*') < text.size() - 1) return fail("has a \"*\" before the end of a name");
  return name;
}

bool is_framing(std::string_view lower_name) {
  static constexpr std::array<std::string_view, 11> kNames = {"connection",
                                                              "content-length",
                                                              "host",
                                                              "keep-alive",
                                                              "proxy-authenticate",
                                                              "te",
                                                              "trailer",
                                                              "transfer-encoding",
                                                              "proxy-authorization",
                                                              "upgrade",
                                                              "via"};
  return std::ranges::find(kNames, lower_name) != kNames.end();
}

}  // namespace

Result<StatusLife> parse_status_life(std::string_view text) {
  StatusLife life;
  const std::size_t equals = text.find('=');
  if (equals != std::string_view::npos) {
    if (!read_statuses(text.substr(0, equals), life)) return fail("is not an error status");
    text.remove_prefix(equals + 1);
  }
  const auto duration = parse_duration(text);
  if (!duration) return fail("is not a duration");
  life.life = *duration;
  return life;
}

Result<KeyQuery> parse_key_query(std::string_view text) {
  using Which = KeyQuery::Kind;
  if (text == "all") return KeyQuery{};
  if (text == "none") return KeyQuery{.kind = Which::kNone};
  for (const auto& [word, kind] : {std::pair<std::string_view, Which>{"only:", Which::kOnly},
                                   std::pair<std::string_view, Which>{"except:", Which::kExcept}}) {
    if (!text.starts_with(word)) continue;
    auto names = read_names(text.substr(word.size()), check_query_name);
    if (!names) return std::unexpected(names.error());
    return KeyQuery{.kind = kind, .names = std::move(*names)};
  }
  return fail("is unknown");
}

Result<Cookies> parse_cookies(std::string_view text) {
  using Which = Cookies::Kind;
  if (text == "bypass") return Cookies{.kind = Which::kBypass};
  if (text == "ignore") return Cookies{.kind = Which::kIgnore};
  for (const auto& [word, kind] : {std::pair<std::string_view, Which>{"key:", Which::kKey},
                                   std::pair<std::string_view, Which>{"bypass:", Which::kBypass}}) {
    if (!text.starts_with(word)) continue;
    auto names = read_names(text.substr(word.size()), check_cookie_name);
    if (!names) return std::unexpected(names.error());
    return Cookies{.kind = kind, .names = std::move(*names)};
  }
  return fail("is unknown");
}

Result<FieldLine> parse_field_line(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return fail("has no \":\"");
  auto name = check_field_name(text.substr(0, colon));
  if (!name) return std::unexpected(name.error());
  if (is_framing(lower_ascii(*name))) return fail("is a connection field");
  std::string_view value = text.substr(colon + 1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  while (value.ends_with(' ')) value.remove_suffix(1);
  const bool good = std::ranges::all_of(value, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte != 0x7f;
  });
  if (!good) return fail("has a control character");
  return FieldLine{.name = std::move(*name), .value = std::string(value)};
}

}  // namespace encore::config

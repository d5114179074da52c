#include "config/log_format.h"

#include <algorithm>
#include <optional>
#include <span>

namespace encore::config {
namespace {

struct Directive {
  char letter;
  LogField field;
};
constexpr auto kDirectives = std::to_array<Directive>({
    {'h', LogField::kClient},  {'a', LogField::kClient},       {'l', LogField::kNothing},
    {'u', LogField::kUser},    {'t', LogField::kLogTime},      {'r', LogField::kRequestLine},
    {'s', LogField::kStatus},  {'b', LogField::kBodyOrDash},   {'B', LogField::kBodyBytes},
    {'O', LogField::kBytes},   {'I', LogField::kRequestBytes}, {'D', LogField::kDuration},
    {'T', LogField::kSeconds}, {'m', LogField::kMethod},       {'U', LogField::kPath},
    {'q', LogField::kQuery},   {'H', LogField::kVersion},      {'v', LogField::kServerName},
    {'p', LogField::kPort},    {'X', LogField::kConnection},
});

std::optional<LogField> field_named(std::string_view name) {
  using Texts = std::span<const LogFieldText>;
  for (const Texts texts : {Texts(kLogFields), Texts(kLogForms)}) {
    const auto found = std::ranges::find(texts, name, &LogFieldText::name);
    if (found != texts.end()) return found->field;
  }
  return std::nullopt;
}

bool is_field_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").contains(c);
  });
}

std::string lower(std::string_view name) {
  std::string out(name);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  });
  return out;
}

// "%{argument}letter".
std::optional<LogPart> with_argument(std::string_view argument, char letter) {
  switch (letter) {
    case 'i':
    case 'o':
      if (!is_field_name(argument)) return std::nullopt;
      return LogPart{letter == 'i' ? LogField::kRequestField : LogField::kResponseField,
                     lower(argument)};
    case 'T':
      if (argument == "us") return LogPart{LogField::kDuration};
      if (argument == "ms") return LogPart{LogField::kMilliseconds};
      if (argument == "s") return LogPart{LogField::kSeconds};
      return std::nullopt;
    case 'x':
      if (const auto field = field_named(argument)) return LogPart{*field};
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// Takes one directive, of which the '%' is gone, off the text.
std::optional<LogPart> take_directive(std::string_view& text) {
  if (text.starts_with('{')) {
    const std::size_t end = text.find('}');
    if (end == std::string_view::npos || end + 1 == text.size()) return std::nullopt;
    auto part = with_argument(text.substr(1, end - 1), text[end + 1]);
    text.remove_prefix(end + 2);
    return part;
  }
  if (text.starts_with(">s")) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  const char letter = text.front();
  text.remove_prefix(1);
  if (letter == '%') return LogPart{LogField::kLiteral, "%"};
  const auto found = std::ranges::find(kDirectives, letter, &Directive::letter);
  if (found == kDirectives.end()) return std::nullopt;
  return LogPart{found->field};
}

// The error shows the text from the unknown directive on.
std::unexpected<Error> unknown(std::string_view at) {
  constexpr std::size_t kShown = 24;
  return fail("has an unknown directive at \"" + std::string(at.substr(0, kShown)) + "\"");
}

Result<std::vector<LogPart>> parse_line(std::string_view text) {
  std::vector<LogPart> parts;
  bool quoted = false;
  std::size_t directives = 0;
  const auto add_literal = [&](std::string_view literal) {
    for (const char c : literal) quoted ^= c == '"';
    if (parts.empty() || parts.back().field != LogField::kLiteral) parts.emplace_back();
    parts.back().text += literal;
  };
  while (!text.empty()) {
    const std::size_t percent = std::min(text.find('%'), text.size());
    if (percent != 0) {
      add_literal(text.substr(0, percent));
      text.remove_prefix(percent);
      continue;
    }
    const std::string_view at = text;
    text.remove_prefix(1);
    auto part = take_directive(text);
    if (!part) return unknown(at);
    if (part->field == LogField::kLiteral) {
      add_literal(part->text);
      continue;
    }
    ++directives;
    part->quoted = quoted;
    parts.push_back(*std::move(part));
  }
  if (directives == 0) return fail("has no directive");
  return parts;
}

}  // namespace

bool LogFormat::has(LogField field) const {
  switch (style) {
    case Style::kJson:
      return std::ranges::any_of(kLogFields,
                                 [&](const LogFieldText& each) { return each.field == field; });
    case Style::kSquid:
    case Style::kCombined:
      return false;
    case Style::kLine:
      return std::ranges::any_of(parts, [&](const LogPart& part) { return part.field == field; });
  }
  return false;
}

Result<LogFormat> parse_log_format(std::string_view text) {
  using Style = LogFormat::Style;
  if (text == "json") return LogFormat{Style::kJson};
  if (text == "squid") return LogFormat{Style::kSquid};
  if (text == "combined") return LogFormat{Style::kCombined};
  if (text.size() > kLogLineBytesMax) {
    return fail("has more than " + std::to_string(kLogLineBytesMax) + " bytes");
  }
  const auto is_control = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  };
  if (std::ranges::any_of(text, is_control)) return fail("has a control character");
  if (!text.contains('%')) return fail("is not a format");
  auto parts = parse_line(text);
  if (!parts) return std::unexpected(parts.error());
  return LogFormat{Style::kLine, *std::move(parts)};
}

}  // namespace encore::config

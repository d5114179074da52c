#include "proxy/publish/negotiation.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "proxy/http/list.h"

namespace encore::publish {
namespace {

// A member of Accept or Accept-Encoding: what it names, and its weight in thousandths.
struct Weighted {
  std::string_view name;
  unsigned weight = 1000;
};

// "0.5", "1", "0.125" (RFC 9110 12.4.2). Nothing: no weight.
std::optional<unsigned> read_weight(std::string_view text) noexcept {
  if (text.empty() || text.size() > 5 || (text.size() > 1 && text[1] != '.')) return std::nullopt;
  if (text[0] != '0' && text[0] != '1') return std::nullopt;
  unsigned weight = text[0] == '1' ? 1000 : 0;
  unsigned worth = 100;
  for (const char c : text.substr(std::min<std::size_t>(text.size(), 2))) {
    if (!http::is_digit(c)) return std::nullopt;
    weight += static_cast<unsigned>(c - '0') * worth;
    worth /= 10;
  }
  return weight <= 1000 ? std::optional(weight) : std::nullopt;
}

// A weight that cannot be read counts as none: what is named is not wanted.
Weighted read_member(std::string_view member) {
  std::size_t end = std::min(member.find(';'), member.size());
  Weighted found{.name = http::trim_ows(member.substr(0, end))};
  while (end != member.size()) {
    member.remove_prefix(end + 1);
    end = std::min(member.find(';'), member.size());
    const std::string_view parameter = http::trim_ows(member.substr(0, end));
    if (parameter.size() < 2 || http::to_lower(parameter[0]) != 'q' || parameter[1] != '=')
      continue;
    found.weight = read_weight(parameter.substr(2)).value_or(0);
  }
  return found;
}

// 3: the type itself, 2: all of its kind, 1: all; 0: it is not in the range.
unsigned specificity(std::string_view range, std::string_view type) noexcept {
  if (http::equals_ignoring_case(range, type)) return 3;
  if (range == "*/*" || range == "*") return 1;
  const std::size_t slash = type.find('/') + 1;
  return range.size() == slash + 1 && range.back() == '*' &&
                 http::equals_ignoring_case(range.substr(0, slash), type.substr(0, slash))
             ? 2
             : 0;
}

unsigned weight_of(const http::Fields& fields, std::string_view type) {
  unsigned weight = 0;
  unsigned best = 0;
  fields.for_each_member(http::FieldId::kAccept, [&](std::string_view member) {
    const Weighted range = read_member(member);
    const unsigned fits = specificity(range.name, type);
    if (fits == 0 || fits < best) return;
    weight = fits == best ? std::max(weight, range.weight) : range.weight;
    best = fits;
  });
  return weight;
}

}  // namespace

std::optional<std::size_t> choose_type(const http::Fields& fields,
                                       std::span<const std::string_view> offered) {
  if (!fields.has(http::FieldId::kAccept)) return 0;
  std::optional<std::size_t> chosen;
  unsigned best = 0;
  for (std::size_t i = 0; i < offered.size(); ++i) {
    const unsigned weight = weight_of(fields, offered[i]);
    if (weight <= best) continue;
    best = weight;
    chosen = i;
  }
  return chosen;
}

std::string_view to_string(Coding coding) noexcept {
  switch (coding) {
    case Coding::kGzip:
      return "gzip";
    case Coding::kZstd:
      return "zstd";
    case Coding::kIdentity:
      break;
  }
  return "";
}

Coding choose_coding(const http::Fields& fields) {
  // The choice for codings that are not named: "*" states it, and without it identity is the last
  // resort.
  struct Choice {
    Coding coding;
    std::string_view name;
    std::optional<unsigned> weight = {};
  };
  std::array<Choice, 3> choices = {
      {{Coding::kZstd, "zstd"}, {Coding::kGzip, "gzip"}, {Coding::kIdentity, "identity"}}};
  std::optional<unsigned> others;
  fields.for_each_member(http::FieldId::kAcceptEncoding, [&](std::string_view member) {
    const Weighted named = read_member(member);
    if (named.name == "*") others = named.weight;
    const bool old_name = http::equals_lower(named.name, "x-gzip");
    for (Choice& choice : choices) {
      if (http::equals_lower(named.name, choice.name) ||
          (old_name && choice.coding == Coding::kGzip)) {
        choice.weight = named.weight;
      }
    }
  });
  Coding chosen = Coding::kIdentity;
  unsigned best = 0;
  for (const Choice& choice : choices) {
    const unsigned weight = choice.weight.value_or(others.value_or(0));
    if (weight <= best) continue;
    best = weight;
    chosen = choice.coding;
  }
  return chosen;
}

}  // namespace encore::publish

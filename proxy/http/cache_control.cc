#include "proxy/http/cache_control.h"

#include <algorithm>
#include <array>

namespace encore::http {
namespace {

// One directive, its argument unquoted.
class Directive {
 public:
  explicit Directive(std::string_view member) {
    const std::size_t equals = member.find('=');
    name_ = trim_ows(member.substr(0, equals));
    if (equals == std::string_view::npos) return;
    has_argument_ = true;
    // White space around '=' is not in the grammar: the argument then is not one.
    spaced_ = name_.size() != equals || (equals + 1 < member.size() && is_ows(member[equals + 1]));
    argument_ = member.substr(equals + 1);
    if (unquote(argument_, unquoted_)) argument_ = unquoted_;
  }
  Directive(const Directive&) = delete;
  Directive& operator=(const Directive&) = delete;

  bool is(std::string_view lower_name) const noexcept { return equals_lower(name_, lower_name); }
  bool has_argument() const noexcept { return has_argument_; }
  std::string_view argument() const noexcept { return argument_; }
  std::optional<std::uint32_t> delta() const noexcept {
    if (!has_argument_ || spaced_) return std::nullopt;
    return parse_delta(argument_);
  }

 private:
  std::string_view name_;
  std::string_view argument_;
  std::string unquoted_;
  bool has_argument_ = false;
  bool spaced_ = false;
};

void take_shorter(std::optional<std::uint32_t>& slot, const Directive& directive) noexcept {
  const std::uint32_t seconds = directive.delta().value_or(0);
  slot = slot ? std::min(*slot, seconds) : seconds;
}

// no-cache and private, with a list of fields or without. A list that is empty or has what is no
// field name counts as none.
void take_qualified(bool& unqualified, std::vector<std::string>& names,
                    const Directive& directive) {
  std::vector<std::string> found;
  ListReader reader(directive.argument());
  std::string_view name;
  bool good = directive.has_argument();
  while (reader.next(name)) {
    good = good && is_token(name);
    found.emplace_back(name);
    std::ranges::transform(found.back(), found.back().begin(), to_lower);
  }
  if (good && !found.empty() && names.size() + found.size() <= kListedFieldsMax) {
    std::ranges::move(found, std::back_inserter(names));
  } else {
    unqualified = true;
  }
}

struct Flag {
  std::string_view name;
  bool ResponseDirectives::* said;
};
constexpr std::array kFlags = {
    Flag{"no-store", &ResponseDirectives::no_store},
    Flag{"public", &ResponseDirectives::is_public},
    Flag{"must-revalidate", &ResponseDirectives::must_revalidate},
    Flag{"proxy-revalidate", &ResponseDirectives::proxy_revalidate},
    Flag{"must-understand", &ResponseDirectives::must_understand},
    Flag{"no-transform", &ResponseDirectives::no_transform},
    Flag{"immutable", &ResponseDirectives::immutable},
};

void read(ResponseDirectives& result, const Directive& directive) {
  for (const Flag& flag : kFlags) {
    if (!directive.is(flag.name)) continue;
    result.*flag.said = true;
    return;
  }
  if (directive.is("max-age")) {
    take_shorter(result.max_age, directive);
  } else if (directive.is("s-maxage")) {
    take_shorter(result.s_maxage, directive);
  } else if (directive.is("stale-while-revalidate")) {
    take_shorter(result.stale_while_revalidate, directive);
  } else if (directive.is("stale-if-error")) {
    take_shorter(result.stale_if_error, directive);
  } else if (directive.is("no-cache")) {
    take_qualified(result.no_cache, result.stripped_fields, directive);
  } else if (directive.is("private")) {
    take_qualified(result.is_private, result.stripped_fields, directive);
  }
}

void read(RequestDirectives& result, const Directive& directive) {
  if (directive.is("max-age")) {
    take_shorter(result.max_age, directive);
  } else if (directive.is("min-fresh")) {
    if (const auto seconds = directive.delta()) {
      result.min_fresh = std::max(result.min_fresh.value_or(0), *seconds);
    }
  } else if (directive.is("max-stale")) {
    if (directive.has_argument()) {
      take_shorter(result.max_stale, directive);
    } else {
      result.max_stale = std::min(result.max_stale.value_or(kDeltaMax), kDeltaMax);
    }
  } else if (directive.is("stale-if-error")) {
    take_shorter(result.stale_if_error, directive);
  } else {
    result.no_cache = result.no_cache || directive.is("no-cache");
    result.no_store = result.no_store || directive.is("no-store");
    result.only_if_cached = result.only_if_cached || directive.is("only-if-cached");
    result.no_transform = result.no_transform || directive.is("no-transform");
  }
}

}  // namespace

std::optional<std::uint32_t> parse_delta(std::string_view text) noexcept {
  if (text.empty()) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    const std::uint64_t next = std::uint64_t{value} * 10 + static_cast<std::uint64_t>(c - '0');
    value = static_cast<std::uint32_t>(std::min<std::uint64_t>(next, kDeltaMax));
  }
  return value;
}

ResponseDirectives parse_response_directives(const Fields& fields) {
  ResponseDirectives result;
  fields.for_each_member(FieldId::kCacheControl,
                         [&](std::string_view member) { read(result, Directive(member)); });
  return result;
}

RequestDirectives parse_request_directives(const Fields& fields) {
  RequestDirectives result;
  if (fields.has(FieldId::kCacheControl)) {
    fields.for_each_member(FieldId::kCacheControl,
                           [&](std::string_view member) { read(result, Directive(member)); });
  } else {
    result.no_cache = fields.list_has(FieldId::kPragma, "no-cache");
  }
  return result;
}

}  // namespace encore::http

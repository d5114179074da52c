#include "proxy/http/sent_fields.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "proxy/http/list.h"

namespace encore::http {
namespace {

// A '_' counts as '-': what is behind an origin may not tell them apart. REQUIRES: `lower` in lower
// case.
bool begins_with(std::string_view name, std::string_view lower) noexcept {
  if (name.size() < lower.size()) return false;
  for (std::size_t i = 0; i < lower.size(); ++i) {
    const char c = name[i] == '_' ? '-' : to_lower(name[i]);
    if (c != lower[i]) return false;
  }
  return true;
}

// Frameworks and proxies take such fields in the place of the target or of the client's address.
// They are in no key (docs/decisions/0055).
bool speaks_for_a_proxy(std::string_view name) noexcept {
  static constexpr std::array<std::string_view, 6> kNames = {"forwarded",      "x-real-ip",
                                                             "x-original-url", "x-original-host",
                                                             "x-rewrite-url",  "x-forwarded"};
  return begins_with(name, "x-forwarded-") ||
         std::ranges::any_of(kNames, [name](std::string_view known) {
           return name.size() == known.size() && begins_with(name, known);
         });
}

// "q=0.5" without white space in it; nothing else is read. False: not understood.
bool read_weight(std::string_view parameter, bool& zero) noexcept {
  if (parameter.size() < 3 || to_lower(parameter[0]) != 'q' || parameter[1] != '=') return false;
  const std::string_view weight = parameter.substr(2);
  zero = weight.find_first_not_of("0.") == std::string_view::npos;
  return weight.find_first_not_of("0123456789.") == std::string_view::npos;
}

// The codings that have a bit each, and the text for each set of them, in the order of the bits.
constexpr unsigned kBr = 1;
constexpr unsigned kGzip = 2;
constexpr unsigned kZstd = 4;
constexpr std::array<std::string_view, 8> kSets = {
    "identity", "br", "gzip", "br, gzip", "zstd", "br, zstd", "gzip, zstd", "br, gzip, zstd"};

unsigned coding_of(std::string_view name) noexcept {
  switch (name.size()) {
    case 2:
      return equals_lower(name, "br") ? kBr : 0;
    case 4:
      if (equals_lower(name, "gzip")) return kGzip;
      return equals_lower(name, "zstd") ? kZstd : 0;
    case 6:
      return equals_lower(name, "x-gzip") ? kGzip : 0;
    default:
      return 0;
  }
}

// As far as the value is what nearly all clients send: known codings, with a comma or a comma and
// a space between them. Returns what is left of it.
std::string_view read_known_codings(std::string_view value, unsigned& accepted) noexcept {
  while (!value.empty()) {
    std::size_t end = 0;
    while (end < value.size() && value[end] != ',' && value[end] != ';') ++end;
    const unsigned coding = coding_of(value.substr(0, end));
    if (coding == 0 || (end < value.size() && value[end] != ',')) break;
    accepted |= coding;
    const bool space = end + 1 < value.size() && value[end + 1] == ' ';
    value.remove_prefix(std::min(end + (space ? 2 : 1), value.size()));
  }
  return value;
}

// One member of Accept-Encoding. False: it says more than a set of codings can.
bool read_coding(std::string_view member, unsigned& accepted) noexcept {
  const std::size_t end = std::min(member.find(';'), member.size());
  const std::string_view name = trim_ows(member.substr(0, end));
  bool refused = false;
  if (end != member.size() && !read_weight(trim_ows(member.substr(end + 1)), refused)) return false;
  const unsigned coding = coding_of(name);
  if (coding == 0)
    return is_token(name) && name != "*" && !(refused && equals_lower(name, "identity"));
  accepted = refused ? accepted & ~coding : accepted | coding;
  return true;
}

struct KeptCookie {
  std::ptrdiff_t pattern;  // the first that names it
  std::string_view name;
  std::string_view value;  // with its '='
  std::size_t place;       // among those of the request
};

// A pattern is a name, or the beginning of names with '*' behind it.
bool is_cookie_of(std::string_view name, std::string_view pattern) noexcept {
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

bool SentFields::drops_by_name(std::string_view name) const noexcept {
  const char first = name.empty() ? '\0' : to_lower(name.front());
  if ((first == 'x' || first == 'f') && speaks_for_a_proxy(name)) return true;
  return options_.reverse &&
         (equals_lower(name, "proxy") || name.find('_') != std::string_view::npos);
}

// Also as a program would read it that gets fields as variables of the environment.
bool SentFields::is_own(std::string_view name) const noexcept {
  return std::ranges::any_of(options_.own_names, [name](const std::string& own) {
    return std::ranges::equal(
        name, own, [](char a, char b) { return to_lower(a) == b || (a == '_' && b == '-'); });
  });
}

bool SentFields::is_decided(std::string_view name) const noexcept {
  return std::ranges::any_of(options_.decided_names, [name](const std::string& decided) {
    return equals_lower(name, decided);
  });
}

bool SentFields::sends_cookie() const {
  if (!fields_.has(FieldId::kCookie)) return false;
  if (options_.cookies == CookieUse::kSome) return !kept_cookies().empty();
  return std::ranges::any_of(fields_, [this](const Field& field) {
    return field.id == FieldId::kCookie && !drops(field);
  });
}

std::string SentFields::credentials() const {
  std::string text;
  const auto append = [&text](std::string_view value) {
    text += value;
    text += '\n';
  };
  if (const std::string kept = kept_cookies(); !kept.empty()) append(kept);
  for_each(FieldId::kCookie, "cookie", [&](const Field& field) { append(field.value); });
  if (!text.empty()) text += '\n';  // no cookie reads as an Authorization
  for_each(FieldId::kAuthorization, "authorization",
           [&](const Field& field) { append(field.value); });
  return text;
}

std::string SentFields::kept_cookies() const {
  std::string kept;
  if (options_.cookies != CookieUse::kSome || !fields_.has(FieldId::kCookie)) return kept;
  if (is_decided("cookie")) return kept;
  std::vector<KeptCookie> found;
  fields_.for_each(FieldId::kCookie, [&](const Field& field) {
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(';'), rest.size());
      const std::string_view pair = trim_ows(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const std::size_t equals = pair.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view name = trim_ows(pair.substr(0, equals));
      const auto pattern = std::ranges::find_if(
          options_.cookie_names,
          [name](const std::string& each) { return is_cookie_of(name, each); });
      if (pattern == options_.cookie_names.end()) continue;
      found.push_back(
          {pattern - options_.cookie_names.begin(), name, pair.substr(equals), found.size()});
    }
  });
  // The order of the client makes no variant of its own: cookies that one pattern names are sorted.
  std::ranges::sort(found, {}, [](const KeptCookie& cookie) {
    return std::tuple(cookie.pattern, cookie.name, cookie.place);
  });
  for (const KeptCookie& cookie : found) {
    if (!kept.empty()) kept += "; ";
    kept += cookie.name;
    kept += cookie.value;
  }
  return kept;
}

std::optional<std::string_view> normalised_accept_encoding(const SentFields& request) {
  unsigned accepted = 0;
  bool plain = true;
  request.for_each(FieldId::kAcceptEncoding, "accept-encoding", [&](const Field& field) {
    ListReader reader(read_known_codings(field.value, accepted));
    std::string_view member;
    while (reader.next(member)) plain = read_coding(member, accepted) && plain;
  });
  if (!plain) return std::nullopt;
  return kSets[accepted];
}

}  // namespace encore::http

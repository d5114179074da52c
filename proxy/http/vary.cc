#include "proxy/http/vary.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace encore::http {
namespace {

constexpr char kAbsent = '\x01';
constexpr char kPresent = '\x02';

// How the values of a field may be rewritten without a change of meaning (RFC 9111 4.1).
enum class Grammar : std::uint8_t {
  kUnknown,   // not known to be a list: lines are combined (RFC 9110 5.3), nothing else
  kSingle,    // known to be none: lines are not even combined
  kList,      // a comma list: white space around members and empty members mean nothing
  kWeighted,  // members with q: case, order and the form of the weight mean nothing either
};

Grammar grammar_of(FieldId id, std::string_view lower_name) noexcept {
  switch (id) {
    case FieldId::kCookie:
    case FieldId::kUserAgent:
    case FieldId::kAuthorization:
    case FieldId::kReferer:
      return Grammar::kSingle;
    case FieldId::kAccept:
    case FieldId::kAcceptEncoding:
    case FieldId::kAcceptLanguage:
      return Grammar::kWeighted;
    case FieldId::kCacheControl:
    case FieldId::kCdnLoop:
    case FieldId::kIfMatch:
    case FieldId::kIfNoneMatch:
    case FieldId::kPragma:
    case FieldId::kTrailer:
    case FieldId::kVia:
      return Grammar::kList;
    default:
      break;
  }
  if (lower_name == "accept-charset") return Grammar::kWeighted;
  if (lower_name == "prefer") return Grammar::kList;
  return lower_name == "origin" ? Grammar::kSingle : Grammar::kUnknown;
}

// "q=0.50" as "q=0.5", "q=1.0" as nothing; other parameters stay as they are.
void append_parameter(std::string_view parameter, std::string& key) {
  const bool weight = parameter.size() > 2 && to_lower(parameter[0]) == 'q' &&
                      parameter[1] == '=' &&
                      parameter.find_first_not_of("0123456789.", 2) == std::string_view::npos;
  if (!weight) {
    key += ';';
    key += parameter;
    return;
  }
  std::string_view value = parameter.substr(2);
  if (value.find('.') != std::string_view::npos) {
    while (value.ends_with('0')) value.remove_suffix(1);
    if (value.ends_with('.')) value.remove_suffix(1);
  }
  if (value == "1") return;
  key += ";q=";
  key += value;
}

// The end of what is in front of the next ';' outside of quotes.
std::size_t parameter_end(std::string_view text) noexcept {
  bool quoted = false;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == ';' && !quoted) {
      break;
    }
  }
  return std::min(i, text.size());
}

// The name of what is accepted in lower case, white space around ';' left out.
void append_weighted(std::string_view member, std::string& key) {
  std::size_t end = parameter_end(member);
  for (const char c : trim_ows(member.substr(0, end))) key += to_lower(c);
  while (end < member.size()) {
    member.remove_prefix(end + 1);
    end = parameter_end(member);
    append_parameter(trim_ows(member.substr(0, end)), key);
  }
}

// A value within the limits: its lines by the grammar of the field.
class ValueWriter {
 public:
  ValueWriter(Grammar grammar, std::string& key) noexcept : grammar_(grammar), key_(key) {
    key_ += kPresent;
    begin_ = key_.size();
  }

  // False: beyond the limits.
  bool add_line(std::string_view value) {
    bytes_ += value.size();
    if (bytes_ > kSelectingBytesMax) return false;
    if (grammar_ == Grammar::kUnknown || grammar_ == Grammar::kSingle) {
      if (++members_ > kSelectingMembersMax) return false;
      if (members_ > 1) key_ += grammar_ == Grammar::kSingle ? "\n" : ", ";
      key_ += value;
      return true;
    }
    ListReader reader(value);
    std::string_view member;
    while (reader.next(member)) {
      if (members_ == kSelectingMembersMax) return false;
      if (members_ > 0) key_ += ',';
      const std::size_t at = key_.size();
      if (grammar_ == Grammar::kList) {
        key_ += member;
      } else {
        append_weighted(member, key_);
      }
      places_[members_++] = {static_cast<std::uint32_t>(at),
                             static_cast<std::uint32_t>(key_.size() - at)};
    }
    return true;
  }

  // Members in any order become a sorted set.
  void finish() {
    if (grammar_ != Grammar::kWeighted) return;
    std::array<std::string_view, kSelectingMembersMax> members;
    const auto read = [&](std::string_view text) {
      for (std::size_t i = 0; i < members_; ++i) {
        members[i] = text.substr(places_[i].at, places_[i].size);
      }
    };
    const std::span set(members.data(), members_);
    read(key_);
    if (std::ranges::adjacent_find(set, std::ranges::greater_equal{}) == set.end()) return;
    const std::string text = key_;
    read(text);
    std::ranges::sort(set);
    key_.resize(begin_);
    for (std::size_t i = 0; i < set.size(); ++i) {
      if (i > 0 && set[i] == set[i - 1]) continue;
      if (i > 0) key_ += ',';
      key_ += set[i];
    }
  }

 private:
  struct Place {
    std::uint32_t at = 0;
    std::uint32_t size = 0;
  };

  Grammar grammar_;
  std::string& key_;
  std::size_t begin_ = 0;
  std::size_t bytes_ = 0;
  std::size_t members_ = 0;
  std::array<Place, kSelectingMembersMax> places_;  // places of the members in the key
};

std::string joined_names(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) {
    if (!joined.empty()) joined += ',';
    joined += name;
  }
  return joined;
}

bool append_text(std::string_view text, std::string& key) {
  if (text.size() > kSelectingBytesMax) return false;
  key += kPresent;
  key += text;
  return true;
}

// Appends the cookies that the operator names, as the origin receives them.
bool append_cookies(const SentFields& sent, std::string& key) {
  const std::string kept = sent.kept_cookies();
  if (!kept.empty()) return append_text(kept, key);
  key += kAbsent;
  return true;
}

bool append_name(std::string_view lower_name, const SentFields& sent, const VaryOptions& options,
                 std::string& key) {
  const FieldId id = classify_field(lower_name);
  // With these an origin learns the client's identity: its response is for nobody else.
  if ((options.reverse || options.tells_client) &&
      (id == FieldId::kXForwardedFor || id == FieldId::kForwarded))
    return false;
  if (std::ranges::count(options.own_names, lower_name) != 0) return false;
  if (id == FieldId::kAcceptEncoding && options.normalise_accept_encoding) {
    if (const auto encodings = normalised_accept_encoding(sent)) {
      key += kPresent;
      key += *encodings;
      return true;
    }
  }
  if (id == FieldId::kCookie && options.cookies == CookieUse::kSome) {
    return append_cookies(sent, key);
  }
  if (id == FieldId::kTe) {  // hop-by-hop: replaced by our own value
    key += sent.all().list_has(FieldId::kTe, "trailers") ? kPresent : kAbsent;
    return true;
  }
  const std::size_t begin = key.size();
  bool present = false;
  bool within = true;
  ValueWriter writer(grammar_of(id, lower_name), key);
  sent.for_each(id, lower_name, [&](const Field& field) {
    present = true;
    within = within && writer.add_line(field.value);
  });
  if (!present) key[begin] = kAbsent;
  if (within) writer.finish();
  return within;
}

}  // namespace

std::string selecting_names(const Fields& response) { return selecting_names(response, {}); }

std::string selecting_names(const Fields& response, const VaryOptions& options) {
  if (!response.has(FieldId::kVary) && options.further_names.empty()) return {};
  std::vector<std::string> names = options.further_names;
  bool star = false;
  if (options.ignores_vary) return joined_names(names);
  response.for_each_member(FieldId::kVary, [&](std::string_view member) {
    star = star || member == "*" || !is_token(member);
    names.emplace_back(member);
    std::ranges::transform(names.back(), names.back().begin(), to_lower);
  });
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  if (star || names.size() > kSelectingNamesMax) return "*";
  return joined_names(names);
}

bool write_variant_key(std::string_view names, const Fields& request, const VaryOptions& options,
                       std::string& key) {
  key.clear();
  if (names.empty()) return true;
  if (names == "*") {
    key = '*';
    return false;
  }
  key += names;
  const SentFields sent(request, options);
  while (!names.empty()) {
    const std::size_t size = std::min(names.find(','), names.size());
    if (!append_name(names.substr(0, size), sent, options, key)) {
      key.assign(1, '*');  // GCC 12 misreads an assigned literal as an overlapping copy
      return false;
    }
    names.remove_prefix(std::min(size + 1, names.size()));
  }
  return true;
}

}  // namespace encore::http

#include "proxy/http/vary.h"

#include <algorithm>
#include <array>
#include <vector>

namespace encore::http {
namespace {

constexpr char kAbsent = '\x01';
constexpr char kPresent = '\x02';

// How the values of a field may be rewritten without a change of meaning (RFC 9111 4.1).
enum class Grammar : std::uint8_t {
  kOpaque,    // not a list: lines are joined, nothing else
  kList,      // a comma list, or unknown and written like one: white space around members
  kWeighted,  // members with q: case, order and the form of the weight mean nothing either
};

Grammar grammar_of(FieldId id, std::string_view lower_name) noexcept {
  switch (id) {
    case FieldId::kCookie:
    case FieldId::kUserAgent:
    case FieldId::kAuthorization:
    case FieldId::kProxyAuthorization:
    case FieldId::kReferer:
    case FieldId::kHost:
      return Grammar::kOpaque;
    case FieldId::kAccept:
    case FieldId::kAcceptEncoding:
    case FieldId::kAcceptLanguage:
      return Grammar::kWeighted;
    default:
      return lower_name == "accept-charset" ? Grammar::kWeighted : Grammar::kList;
  }
}

// Calls f for every line of the field.
template <typename F>
void for_each_line(const Fields& fields, FieldId id, std::string_view lower_name, F&& f) {
  if (id != FieldId::kOther) return fields.for_each(id, f);
  for (const Field& field : fields) {
    if (field.id == FieldId::kOther && equals_lower(field.name, lower_name)) f(field);
  }
}

// Lower case and without white space, but not within quotes.
std::string squeezed(std::string_view member) {
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0; i < member.size(); ++i) {
    const char c = member[i];
    if (quoted && c == '\\' && i + 1 < member.size()) {
      out += c;
      out += member[++i];
      continue;
    }
    if (c == '"') quoted = !quoted;
    if (quoted || !is_ows(c)) out += quoted ? c : to_lower(c);
  }
  return out;
}

// "en;q=0.50" as "en;q=0.5", "en;q=1.0" as "en".
void normalise_weight(std::string& member) {
  const std::size_t at = member.rfind(";q=");
  if (at == std::string::npos) return;
  if (member.find('.', at) != std::string::npos) {
    while (member.back() == '0') member.pop_back();
    if (member.back() == '.') member.pop_back();
  }
  if (member.substr(at) == ";q=1") member.resize(at);
}

void append_joined(const std::vector<std::string>& members, std::string& key) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i > 0) key += ',';
    key += members[i];
  }
}

void append_value(std::string_view lower_name, const Fields& request, std::string& key) {
  const FieldId id = classify_field(lower_name);
  const Grammar grammar = grammar_of(id, lower_name);
  std::vector<std::string> members;
  bool present = false;
  for_each_line(request, id, lower_name, [&](const Field& field) {
    present = true;
    if (grammar == Grammar::kOpaque) {
      members.emplace_back(field.value);
      return;
    }
    ListReader reader(field.value);
    std::string_view member;
    while (reader.next(member)) {
      if (grammar == Grammar::kList) {
        members.emplace_back(member);
        continue;
      }
      members.push_back(squeezed(member));
      normalise_weight(members.back());
    }
  });
  key += present ? kPresent : kAbsent;
  if (grammar == Grammar::kWeighted) {
    std::ranges::sort(members);
    const auto repeated = std::ranges::unique(members);
    members.erase(repeated.begin(), repeated.end());
  }
  append_joined(members, key);
}

// A weight of nothing but zeros: "not acceptable" (RFC 9110 12.4.2).
bool is_zero_weight(std::string_view weight) noexcept {
  return !weight.empty() && weight.find_first_not_of("0.") == std::string_view::npos;
}

}  // namespace

std::string selecting_names(const Fields& response) {
  std::vector<std::string> names;
  bool star = false;
  response.for_each_member(FieldId::kVary, [&](std::string_view member) {
    star = star || member == "*" || !is_token(member);
    names.emplace_back(member);
    std::ranges::transform(names.back(), names.back().begin(), to_lower);
  });
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  if (star || names.size() > kSelectingNamesMax) return "*";
  std::string joined;
  append_joined(names, joined);
  return joined;
}

void write_variant_key(std::string_view names, const Fields& request, const VaryOptions& options,
                       std::string& key) {
  key.clear();
  key += names;
  std::string encodings;
  while (!names.empty()) {
    const std::size_t size = std::min(names.find(','), names.size());
    const std::string_view name = names.substr(0, size);
    if (options.normalise_accept_encoding && name == "accept-encoding" &&
        normalise_accept_encoding(request, encodings)) {
      // Where no coding is accepted it is the same whether the field says so or is missing.
      key += kPresent;
      key += encodings;
    } else {
      append_value(name, request, key);
    }
    names.remove_prefix(std::min(size + 1, names.size()));
  }
}

bool normalise_accept_encoding(const Fields& request, std::string& out) {
  struct Coding {
    std::string_view name;
    std::string_view alias;
    bool accepted = false;
  };
  std::array<Coding, 3> codings = {Coding{"br", "br"}, Coding{"gzip", "x-gzip"},
                                   Coding{"zstd", "zstd"}};
  bool plain = true;
  request.for_each_member(FieldId::kAcceptEncoding, [&](std::string_view member) {
    const std::string text = squeezed(member);
    const std::string_view name = std::string_view(text).substr(0, text.find(';'));
    const std::size_t at = text.find(";q=");
    const bool refused =
        at != std::string::npos && is_zero_weight(std::string_view(text).substr(at + 3));
    plain = plain && is_token(trim_ows(member.substr(0, member.find(';')))) && name != "*" &&
            !(name == "identity" && refused);
    for (Coding& coding : codings) {
      if (name == coding.name || name == coding.alias) coding.accepted = !refused;
    }
  });
  out.clear();
  for (const Coding& coding : codings) {
    if (!coding.accepted) continue;
    if (!out.empty()) out += ", ";
    out += coding.name;
  }
  return plain;
}

}  // namespace encore::http

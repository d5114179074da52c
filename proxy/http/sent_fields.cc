#include "proxy/http/sent_fields.h"

#include <algorithm>
#include <array>

#include "proxy/http/list.h"

namespace encore::http {
namespace {

// Ours to say, or nobody's.
constexpr FieldSet kNotTheClients = {FieldId::kHost, FieldId::kForwarded, FieldId::kXForwardedFor,
                                     FieldId::kXForwardedHost, FieldId::kXForwardedProto};

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

// What frameworks and proxies take in the place of the target or of the client's address.
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

struct Coding {
  std::string_view name;
  std::string_view alias;
  bool accepted = false;
};

// One member of Accept-Encoding. False: it says more than a set of codings can.
bool read_coding(std::string_view member, std::array<Coding, 3>& codings) noexcept {
  const std::size_t end = std::min(member.find(';'), member.size());
  const std::string_view name = trim_ows(member.substr(0, end));
  bool refused = false;
  if (end != member.size() && !read_weight(trim_ows(member.substr(end + 1)), refused)) return false;
  if (!is_token(name) || name == "*" || (refused && equals_lower(name, "identity"))) return false;
  for (Coding& coding : codings) {
    if (equals_lower(name, coding.name) || equals_lower(name, coding.alias)) {
      coding.accepted = !refused;
    }
  }
  return true;
}

}  // namespace

bool SentFields::drops(const Field& field) const noexcept {
  if (hop_by_hop_.drops(field)) return true;
  if (field.id != FieldId::kOther) return kNotTheClients.has(field.id);
  const char first = field.name.empty() ? '\0' : to_lower(field.name.front());
  if ((first == 'x' || first == 'f') && speaks_for_a_proxy(field.name)) return true;
  return reverse_ &&
         (equals_lower(field.name, "proxy") || field.name.find('_') != std::string_view::npos);
}

bool normalise_accept_encoding(const SentFields& request, std::string& out) {
  std::array<Coding, 3> codings = {Coding{"br", "br"}, Coding{"gzip", "x-gzip"},
                                   Coding{"zstd", "zstd"}};
  bool plain = true;
  request.for_each(FieldId::kAcceptEncoding, "accept-encoding", [&](const Field& field) {
    ListReader reader(field.value);
    std::string_view member;
    while (reader.next(member)) plain = read_coding(member, codings) && plain;
  });
  out.clear();
  for (const Coding& coding : codings) {
    if (!coding.accepted) continue;
    if (!out.empty()) out += ", ";
    out += coding.name;
  }
  if (out.empty()) out = "identity";
  return plain;
}

}  // namespace encore::http

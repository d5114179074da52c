#include "proxy/http/via.h"

#include <algorithm>

namespace encore::http {

std::string via_member(Version version, std::string_view pseudonym) {
  std::string member = version == Version::kHttp10 ? "1.0 " : "1.1 ";
  if (version == Version::kHttp2) member = "2.0 ";
  member += pseudonym;
  return member;
}

bool via_has(const Fields& fields, std::string_view pseudonym) noexcept {
  bool found = false;
  fields.for_each_member(FieldId::kVia, [&](std::string_view member) {
    // received-protocol RWS received-by [ RWS comment ]
    const std::size_t protocol = std::min(member.find_first_of(" \t"), member.size());
    const std::string_view rest = trim_ows(member.substr(protocol));
    const std::string_view by = rest.substr(0, rest.find_first_of(" \t"));
    found = found || equals_ignoring_case(by, pseudonym);
  });
  return found;
}

}  // namespace encore::http

#include "proxy/net/admin_message.h"

#include <strings.h>

#include <algorithm>

namespace encore::net {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::string_view AdminRequest::field(std::string_view name) const {
  const auto at =
      std::ranges::find_if(fields, [&](const auto& f) { return same_name(f.first, name); });
  return at == fields.end() ? std::string_view() : std::string_view(at->second);
}

std::size_t AdminRequest::field_count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(fields, [&](const auto& f) { return same_name(f.first, name); }));
}

}  // namespace encore::net

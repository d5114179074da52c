#include "proxy/http/tags.h"

#include <algorithm>
#include <string_view>

namespace encore::http {
namespace {

std::string_view separators_of(const Field& field) {
  if (field.id == FieldId::kCacheTag) return ",";
  const auto is = [&](std::string_view name) { return equals_ignoring_case(field.name, name); };
  if (is("x-cache-tags") || is("x-magento-tags")) return ",";
  return is("xkey") || is("cache-tags") ? " \t," : " \t";
}

}  // namespace

std::string tags_in(const Fields& fields, const std::vector<std::string>& names) {
  std::string tags;
  const auto add = [&tags](std::string_view tag) {
    if (tag.empty()) return;
    tags += tag;
    tags += '\n';
  };
  for (const Field& field : fields) {
    const bool listed = std::ranges::any_of(
        names, [&](const std::string& name) { return equals_ignoring_case(field.name, name); });
    if (!listed) continue;
    const std::string_view separators = separators_of(field);
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const std::string_view tag = rest.substr(0, rest.find_first_of(separators));
      rest.remove_prefix(std::min(tag.size() + 1, rest.size()));
      add(trim_ows(tag));
    }
  }
  return tags;
}

bool has_tag(std::string_view tags, std::string_view tag) {
  while (!tags.empty()) {
    const std::string_view each = tags.substr(0, tags.find('\n'));
    if (each == tag) return true;
    tags.remove_prefix(std::min(each.size() + 1, tags.size()));
  }
  return false;
}

}  // namespace encore::http

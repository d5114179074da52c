#include "proxy/http/targeted.h"

#include <algorithm>

#include "proxy/http/structured.h"

namespace encore::http {
namespace {

using Type = StructuredMember::Type;

std::uint32_t delta_of(const StructuredMember& member) noexcept {
  if (member.type != Type::kInteger || member.integer < 0) return 0;
  return static_cast<std::uint32_t>(std::min<std::int64_t>(member.integer, kDeltaMax));
}

// A directive that restricts holds unless it says ?0; one that permits, only if it says ?1.
bool restricts(const StructuredMember& member) noexcept {
  return member.type != Type::kBoolean || member.boolean;
}
bool permits(const StructuredMember& member) noexcept {
  return member.type == Type::kBoolean && member.boolean;
}

void take_qualified(bool& unqualified, std::vector<std::string>& names,
                    const StructuredMember& member) {
  if (member.type != Type::kString || member.text.empty()) {
    unqualified = restricts(member);
    return;
  }
  ListReader reader(member.text);
  std::string_view name;
  while (reader.next(name)) {
    unqualified = unqualified || !is_token(name) || names.size() == kListedFieldsMax;
    if (unqualified) return;
    names.emplace_back(name);
    std::ranges::transform(names.back(), names.back().begin(), to_lower);
  }
}

void read(ResponseDirectives& result, const StructuredMember& member) {
  const std::string_view key = member.key;
  if (key == "max-age") {
    result.max_age = delta_of(member);
  } else if (key == "s-maxage") {
    result.s_maxage = delta_of(member);
  } else if (key == "stale-while-revalidate") {
    result.stale_while_revalidate = delta_of(member);
  } else if (key == "stale-if-error") {
    result.stale_if_error = delta_of(member);
  } else if (key == "no-cache") {
    take_qualified(result.no_cache, result.stripped_fields, member);
  } else if (key == "private") {
    take_qualified(result.is_private, result.stripped_fields, member);
  } else if (key == "no-store") {
    result.no_store = restricts(member);
  } else if (key == "must-revalidate") {
    result.must_revalidate = restricts(member);
  } else if (key == "proxy-revalidate") {
    result.proxy_revalidate = restricts(member);
  } else if (key == "no-transform") {
    result.no_transform = restricts(member);
  } else if (key == "must-understand") {
    result.must_understand = permits(member);
  } else if (key == "public") {
    result.is_public = permits(member);
  } else if (key == "immutable") {
    result.immutable = permits(member);
  }
}

// All lines of the field as one value.
std::string joined(const Fields& fields, std::string_view lower_name) {
  std::string value;
  for (const Field& field : fields) {
    if (!equals_lower(field.name, lower_name)) continue;
    if (!value.empty()) value += ", ";
    value += field.value;
  }
  return value;
}

}  // namespace

std::optional<ResponseDirectives> parse_targeted(std::string_view joined_value) {
  const auto members = parse_dictionary(joined_value);
  if (!members || members->empty()) return std::nullopt;
  ResponseDirectives result;
  result.targeted = true;
  for (const StructuredMember& member : *members) read(result, member);
  return result;
}

ResponseDirectives effective_directives(const Fields& fields,
                                        std::span<const std::string> targets) {
  for (const std::string& name : targets) {
    const std::string value = joined(fields, name);
    if (value.empty()) continue;
    if (auto directives = parse_targeted(value)) return *std::move(directives);
  }
  return parse_response_directives(fields);
}

}  // namespace encore::http

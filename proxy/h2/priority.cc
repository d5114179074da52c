#include "proxy/h2/priority.h"

#include "proxy/http/structured.h"

namespace encore::h2 {
namespace {

// Longer ones are not worth the reading.
constexpr std::size_t kValueBytesMax = 64;

bool is_urgency(std::string_view value) {
  return value.size() >= 3 && value.starts_with("u=") && value[2] >= '0' && value[2] <= '7';
}

}  // namespace

Priority parse_priority(std::string_view value) {
  if (value.size() > kValueBytesMax) return {};
  Priority priority = {.is_incremental = false};
  // The forms that browsers send.
  if (is_urgency(value)) {
    const std::string_view behind = value.substr(3);
    if (behind.empty() || behind == ", i") {
      priority.urgency = static_cast<std::uint8_t>(value[2] - '0');
      priority.is_incremental = !behind.empty();
      return priority;
    }
  }
  const auto members = http::parse_dictionary(value);
  if (!members) return {};
  for (const http::StructuredMember& each : *members) {
    using Type = http::StructuredMember::Type;
    if (each.key == "u" && each.type == Type::kInteger && each.integer >= 0 &&
        each.integer <= Priority::kUrgencyMax) {
      priority.urgency = static_cast<std::uint8_t>(each.integer);
    } else if (each.key == "i" && each.type == Type::kBoolean) {
      priority.is_incremental = each.boolean;
    }
  }
  return priority;
}

}  // namespace encore::h2

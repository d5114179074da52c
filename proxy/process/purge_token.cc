#include "proxy/process/purge_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace encore::server {
namespace {

std::int64_t seconds_of(MonotonicTime now) {
  return std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
}

}  // namespace

// Each text with its length in front: no two orders are one text.
std::string PurgeTokens::signature(const PurgeOrder& order, std::string_view when) const {
  std::string text = fmt::format("{} {} {}", when, order.soft, order.all);
  for (const auto* list : {&order.urls, &order.prefixes, &order.tags}) {
    text += fmt::format(" {}", list->size());
    for (const std::string& each : *list) text += fmt::format(" {}:{}", each.size(), each);
  }
  std::string hex;
  for (const std::uint8_t byte : net::keyed_digest(key_, text)) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::string PurgeTokens::make(const PurgeOrder& order, MonotonicTime now) const {
  const std::string when = fmt::format("{:x}", seconds_of(now));
  return when + "-" + signature(order, when);
}

std::string_view PurgeTokens::refusal(const PurgeOrder& order, MonotonicTime now) const {
  if (order.token.empty()) return {};
  const std::string_view token = order.token;
  const std::string_view when = token.substr(0, token.find('-'));
  const auto given = net::parse_digest(token.substr(std::min(when.size() + 1, token.size())));
  const auto ours = net::parse_digest(signature(order, when));
  if (!given || !ours || !net::equal_in_constant_time(*given, *ours)) {
    return "The token belongs to another purge or another process";
  }
  std::int64_t counted = 0;
  (void)std::from_chars(when.data(), when.data() + when.size(), counted, 16);
  const auto age = std::chrono::seconds(seconds_of(now) - counted);
  return age > kLife ? "The count has expired" : std::string_view();
}

}  // namespace encore::server

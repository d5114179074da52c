#include "proxy/fleet/stream_id.h"

#include <charconv>

namespace encore::fleet {
namespace {

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = status == std::errc{} && end == text.data() + text.size();
  return is_whole ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<StreamId> parse_stream_id(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto ms = parse_number(text.substr(0, dash));
  const auto sequence = parse_number(text.substr(dash + 1));
  if (!ms || !sequence) return std::nullopt;
  return StreamId{*ms, *sequence};
}

std::string to_string(const StreamId& id) {
  return std::to_string(id.ms) + "-" + std::to_string(id.sequence);
}

}  // namespace encore::fleet

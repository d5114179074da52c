#include "proxy/fleet/position.h"

#include <algorithm>

namespace encore::fleet {
namespace {

constexpr std::string_view kHead = "encore fleet position 1\n";

// Takes the line that begins with `name`; nothing: it is another one.
std::optional<std::string> take_line(std::string_view& text, std::string_view name) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(name)) return std::nullopt;
  std::string value(text.substr(name.size(), end - name.size()));
  text.remove_prefix(end + 1);
  return value;
}

}  // namespace

std::string encode(const Position& position) {
  std::string text(kHead);
  text += "stream " + position.stream + "\n";
  text += "id " + to_string(position.id) + "\n";
  for (const std::string& each : position.disks) text += "disk " + each + "\n";
  return text + "end\n";
}

Result<Position> decode_position(std::string_view text) {
  const auto malformed = [] { return fail("is not the position of a node in a stream"); };
  if (!text.starts_with(kHead)) return malformed();
  text.remove_prefix(kHead.size());
  Position position;
  auto stream = take_line(text, "stream ");
  const auto id = stream ? take_line(text, "id ") : std::nullopt;
  const auto parsed = id ? parse_stream_id(*id) : std::nullopt;
  if (!parsed) return malformed();
  position.stream = std::move(*stream);
  position.id = *parsed;
  while (auto disk = take_line(text, "disk ")) position.disks.push_back(std::move(*disk));
  if (text != "end\n") return malformed();
  return position;
}

bool is_unbroken(const StreamId& position, const StreamFacts& facts) {
  // There was no stream when it was taken: all that there ever was in it has to be there.
  if (position == StreamId{}) return !facts.exists || facts.added == facts.length;
  return facts.exists && (facts.has_position || facts.last == position);
}

}  // namespace encore::fleet

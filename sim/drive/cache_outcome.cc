#include "sim/drive/cache_outcome.h"

#include <cstddef>

namespace encore::sim {
namespace {

// Returns the next place of the separator outside of quoted strings, or the end.
std::size_t end_of_part(std::string_view text, char separator) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      quoted = !quoted;
    } else if (quoted && text[i] == '\\') {
      ++i;
    } else if (!quoted && text[i] == separator) {
      return i;
    }
  }
  return text.size();
}

std::string_view take_part(std::string_view& rest, char separator) {
  const std::size_t end = end_of_part(rest, separator);
  std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == rest.size() ? end : end + 1);
  const std::size_t first = part.find_first_not_of(" \t");
  if (first == std::string_view::npos) {
    return {};
  }
  part.remove_prefix(first);
  return part.substr(0, part.find_last_not_of(" \t") + 1);
}

// The detail of a hit may name its place: a disk, or the memory in which objects wait. It is a hit
// all the same.
bool is_place(std::string_view detail) { return detail == "disk" || detail == "probation"; }

}  // namespace

std::string cache_outcome(std::string_view field) {
  std::string_view member;
  while (!field.empty()) {
    member = take_part(field, ',');
  }
  take_part(member, ';');  // the cache's name
  bool hit = false;
  bool collapsed = false;
  std::string_view forwarded;
  std::string_view detail;
  while (!member.empty()) {
    const std::string_view parameter = take_part(member, ';');
    hit = hit || parameter == "hit" || parameter == "hit=?1";
    collapsed = collapsed || parameter == "collapsed" || parameter == "collapsed=?1";
    if (parameter.starts_with("fwd=")) {
      forwarded = parameter.substr(4);
    } else if (parameter.starts_with("detail=")) {
      detail = parameter.substr(7);
    }
  }
  if (forwarded == "bypass" || forwarded == "method") {
    return std::string(forwarded);
  }
  if (!detail.empty() && !(hit && is_place(detail))) {
    return std::string(detail);
  }
  if (collapsed) {
    return "collapsed";
  }
  return hit ? "hit" : forwarded.empty() ? "none" : std::string(forwarded);
}

}  // namespace encore::sim

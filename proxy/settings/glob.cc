#include "proxy/settings/glob.h"

#include <cstddef>
#include <cstring>

namespace encore::server {
namespace {

// Returns the first place of `part`; npos: nowhere. The system's search is linear,
// std::string_view's is not.
std::size_t first_place(std::string_view text, std::string_view part) noexcept {
  if (text.size() < part.size()) return std::string_view::npos;  // may stand nowhere
  const void* found = memmem(text.data(), text.size(), part.data(), part.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

}  // namespace

// Text between two stars is matched at its first place: that leaves most for the rest.
bool glob_matches(std::string_view pattern, std::string_view text) noexcept {
  const std::size_t first = pattern.find('*');
  if (first == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, first))) return false;
  text.remove_prefix(first);
  const std::size_t last = pattern.rfind('*');
  const std::string_view end = pattern.substr(last + 1);
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  // All of it ends with a star.
  std::string_view middle = pattern.substr(first + 1, last - first);
  while (!middle.empty()) {
    const std::size_t star = middle.find('*');
    const std::string_view part = middle.substr(0, star);
    middle.remove_prefix(star + 1);
    if (part.empty()) continue;
    const std::size_t place = first_place(text, part);
    if (place == std::string_view::npos) return false;
    text.remove_prefix(place + part.size());
  }
  return true;
}

bool host_matches(std::string_view pattern, std::string_view host) noexcept {
  if (pattern == "*") return true;
  if (!pattern.starts_with("*.")) return pattern == host;
  const std::string_view suffix = pattern.substr(1);  // ".example.com"
  return host.size() > suffix.size() && host.ends_with(suffix);
}

}  // namespace encore::server

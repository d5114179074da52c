#include "proxy/settings/path_readings.h"

#include <charconv>

namespace encore::server {
namespace {

// Each escape once: "%252F" is "%2F".
std::string unescaped(std::string_view path) {
  std::string text;
  text.reserve(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    unsigned char byte = 0;
    const char* const digits = path.data() + i + 1;
    const bool is_escape = path[i] == '%' && path.size() - i > 2 &&
                           std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    text += is_escape ? static_cast<char>(byte) : path[i];
    if (is_escape) i += 2;
  }
  return text;
}

std::string with_single_slashes(std::string_view path) {
  std::string text;
  text.reserve(path.size());
  for (const char c : path) {
    const bool is_slash = c == '/' || c == '\\';
    if (is_slash && text.ends_with('/')) continue;
    text += is_slash ? '/' : c;
  }
  return text;
}

// RFC 3986 5.2.4.
std::string without_dots(std::string_view path) {
  std::string text;
  text.reserve(path.size());
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view segment = path.substr(0, end);  // with the slash in front of it
    path.remove_prefix(end);
    const bool is_up = segment == "/..";
    if (!is_up && segment != "/.") {
      text += segment;
      continue;
    }
    if (is_up) text.resize(std::min(text.rfind('/'), text.size()));
    if (path.empty()) text += '/';
  }
  return text;
}

}  // namespace

std::vector<std::string> other_readings(std::string_view path) {
  std::vector<std::string> readings;
  const bool has_escapes = path.find('%') != std::string_view::npos;
  const auto has_odd_slashes = [](std::string_view text) {
    return text.find("//") != std::string_view::npos || text.find('\\') != std::string_view::npos;
  };
  if (has_odd_slashes(path)) readings.push_back(without_dots(with_single_slashes(path)));
  if (!has_escapes) return readings;
  const std::string plain = unescaped(path);
  readings.push_back(without_dots(plain));
  if (has_odd_slashes(plain)) readings.push_back(without_dots(with_single_slashes(plain)));
  return readings;
}

}  // namespace encore::server

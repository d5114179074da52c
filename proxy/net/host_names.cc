#include "proxy/net/host_names.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace encore::net {
namespace {

// RFC 1035 2.3.4, counted as text: 255 octets on the wire.
constexpr std::size_t kNameMax = 253;
constexpr std::size_t kLabelMax = 63;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_label_character(char c) {
  const char lower = to_lower(c);
  return (lower >= 'a' && lower <= 'z') || is_digit(c) || c == '-' || c == '_';
}

bool is_hex(char c) {
  const char lower = to_lower(c);
  return is_digit(c) || (lower >= 'a' && lower <= 'f');
}

bool is_number(std::string_view label) {
  if (std::ranges::all_of(label, is_digit)) return true;
  return label.size() >= 2 && label[0] == '0' && to_lower(label[1]) == 'x' &&
         std::ranges::all_of(label.substr(2), is_hex);
}

std::string_view without_final_dot(std::string_view name) {
  return name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
}

}  // namespace

bool is_host_name(std::string_view name) {
  name = without_final_dot(name);
  if (name.empty() || name.size() > kNameMax) return false;
  while (true) {
    const std::size_t dot = name.find('.');
    const std::string_view label = name.substr(0, dot);
    if (label.empty() || label.size() > kLabelMax) return false;
    if (!std::ranges::all_of(label, is_label_character)) return false;
    if (dot == std::string_view::npos) return !is_number(label);
    name.remove_prefix(dot + 1);
  }
}

std::string normal_host_name(std::string_view name) {
  std::string normal(without_final_dot(name));
  std::ranges::transform(normal, normal.begin(), to_lower);
  return normal;
}

bool is_localhost(std::string_view name) {
  const std::string normal = normal_host_name(name);
  return normal == "localhost" || normal.ends_with(".localhost");
}

HostsFile::HostsFile(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    if (!(words >> word)) continue;
    const auto address = Address::parse_ip(word, 0);
    if (!address) continue;
    while (words >> word) names_[normal_host_name(word)].push_back(*address);
  }
}

std::vector<Address> HostsFile::find(const std::string& name) const {
  const auto at = names_.find(name);
  return at == names_.end() ? std::vector<Address>() : at->second;
}

}  // namespace encore::net

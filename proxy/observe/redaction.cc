#include "proxy/observe/redaction.h"

#include <algorithm>
#include <array>
#include <utility>

namespace encore::server {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// As who reads the query reads the name, in lower case.
std::string read_name(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%' && i + 2 < text.size() && digit_of(text[i + 1]) >= 0 &&
        digit_of(text[i + 2]) >= 0) {
      c = static_cast<char>(digit_of(text[i + 1]) * 16 + digit_of(text[i + 2]));
      i += 2;
    }
    name += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  }
  return name;
}

// Returns the place of a URL's user information, with its '@'; {0, 0}: there is none.
std::pair<std::size_t, std::size_t> user_of(std::string_view url) {
  const std::size_t slashes = url.find("//");
  if (slashes == std::string_view::npos || url.substr(0, slashes).contains('?')) return {0, 0};
  const std::size_t begin = slashes + 2;
  const std::size_t end = std::min(url.find_first_of("/?#", begin), url.size());
  const std::size_t at = url.substr(0, end).rfind('@');
  if (at == std::string_view::npos || at < begin) return {0, 0};
  return {begin, at + 1};
}

}  // namespace

Redaction::Redaction(std::vector<std::string> parameters) : parameters_(std::move(parameters)) {
  std::ranges::sort(parameters_);
  for (const std::string& name : parameters_) {
    name_bytes_max_ = std::max(name_bytes_max_, name.size());
  }
}

bool Redaction::is_secret(std::string_view name) const {
  constexpr std::size_t kEscaped = 3;  // bytes of one
  if (name.empty() || name.size() > name_bytes_max_ * kEscaped) return false;
  return std::ranges::binary_search(parameters_, read_name(name));
}

std::string_view Redaction::url(std::string_view url, std::string& storage) const {
  std::size_t copied = 0;  // bytes of the URL copied; storage has the replacements
  const auto hide = [&](std::size_t begin, std::size_t end) {
    if (copied == 0) storage.clear();
    storage.append(url, copied, begin - copied);
    storage += kHidden;
    copied = end;
  };
  if (url.contains('@')) {
    const auto [begin, end] = user_of(url);
    if (end != 0) hide(begin, end - 1);
  }
  std::size_t at = parameters_.empty() ? std::string_view::npos : url.find('?');
  const std::size_t query_end =
      at == std::string_view::npos ? 0 : std::min(url.find('#', at), url.size());
  while (at < query_end) {
    const std::size_t begin = at + 1;
    const std::size_t end = std::min(url.find_first_of("&;", begin), query_end);
    const std::size_t equals = std::min(url.find('=', begin), end);
    if (equals + 1 < end && is_secret(url.substr(begin, equals - begin))) hide(equals + 1, end);
    at = end;
  }
  if (copied == 0) return url;
  storage.append(url, copied);
  return storage;
}

bool is_secret_field(std::string_view lower_name) {
  static constexpr auto kSecret = std::to_array<std::string_view>(
      {"authorization", "cookie", "cookie2", "proxy-authorization", "set-cookie", "set-cookie2",
       "authentication-info", "proxy-authentication-info", "x-amz-security-token"});
  return std::ranges::find(kSecret, lower_name) != kSecret.end();
}

bool is_url_field(std::string_view lower_name) {
  static constexpr auto kUrls = std::to_array<std::string_view>(
      {"content-location", "destination", "location", "origin", "referer"});
  return std::ranges::find(kUrls, lower_name) != kUrls.end();
}

}  // namespace encore::server

#include "config/redis_url.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "config/network.h"

namespace encore::config {
namespace {

constexpr std::string_view kRedisScheme = "redis://";
constexpr std::string_view kSocketScheme = "unix://";

bool is_ascii_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool has_only(std::string_view text, std::string_view marks) {
  return std::ranges::all_of(text, [marks](char c) {
    return is_ascii_alnum(c) || marks.find(c) != std::string_view::npos;
  });
}

std::optional<unsigned> digit_of(char c) {
  unsigned digit = 0;
  const auto [end, status] = std::from_chars(&c, &c + 1, digit, 16);
  return status == std::errc{} && end == &c + 1 ? std::optional(digit) : std::nullopt;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const auto high = digit_of(text[i + 1]);
    const auto low = digit_of(text[i + 2]);
    if (!high || !low) return std::nullopt;
    out += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return out;
}

std::optional<std::uint32_t> parse_database(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = status == std::errc{} && end == text.data() + text.size();
  return is_whole && number <= kDatabaseMax ? std::optional(number) : std::nullopt;
}

// Takes what is in front of the last "@" of the authority.
Result<void> take_user(std::string_view& authority, RedisUrl& url) {
  const std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return {};
  const std::string_view given = authority.substr(0, at);
  authority.remove_prefix(at + 1);
  const std::size_t colon = given.find(':');
  if (colon == std::string_view::npos) {
    return fail("has a user without a password; with fleet.password_file write user:@");
  }
  const auto user = percent_decoded(given.substr(0, colon));
  const auto password = percent_decoded(given.substr(colon + 1));
  if (!user || !password) return fail("has a malformed percent sign in user or password");
  url.user = *user;
  url.password = *password;
  return {};
}

Result<void> take_parameters(std::string_view query, RedisUrl& url, bool has_database) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    if (name == "stream") {
      if (value.empty() || value.size() > kStreamNameBytesMax || !has_only(value, ":._-{}")) {
        return fail("has a stream name that is not 1 to 128 letters, digits and :._-{}");
      }
      url.stream = value;
    } else if (name == "db" && !has_database) {
      const auto database = parse_database(value);
      if (!database) return fail("has no database of 0 .. 65535");
      url.database = *database;
      has_database = true;
    } else {
      return fail("has an unknown parameter");
    }
  }
  return {};
}

}  // namespace

Result<RedisUrl> parse_redis_url(std::string_view text) {
  RedisUrl url;
  if (text.starts_with("rediss://")) {
    return fail(
        "is a URL with TLS, which connections to the engine do not have: use redis:// in a "
        "private network or through a tunnel");
  }
  const bool is_unix = text.starts_with(kSocketScheme);
  if (!is_unix && !text.starts_with(kRedisScheme)) return fail("is not a redis:// or unix:// URL");
  text.remove_prefix(is_unix ? kSocketScheme.size() : kRedisScheme.size());
  const std::size_t question = std::min(text.find('?'), text.size());
  const std::string_view query = text.substr(std::min(question + 1, text.size()));
  text = text.substr(0, question);
  if (is_unix) {
    // The path begins with the slash; a user and its password have none that is not encoded.
    const std::size_t slash = std::min(text.find('/'), text.size());
    std::string_view front = text.substr(0, slash);
    if (auto taken = take_user(front, url); !taken) return std::unexpected(taken.error());
    if (!front.empty()) return fail("has a host; a socket is unix:///path");
    const auto endpoint = parse_listen_endpoint("unix:" + std::string(text.substr(slash)));
    if (!endpoint) return std::unexpected(endpoint.error());
    url.socket = endpoint->socket;
    auto taken = take_parameters(query, url, false);
    return taken ? Result<RedisUrl>(url) : std::unexpected(taken.error());
  }
  const std::size_t slash = std::min(text.find('/'), text.size());
  std::string_view authority = text.substr(0, slash);
  const std::string_view path = text.substr(std::min(slash + 1, text.size()));
  if (auto taken = take_user(authority, url); !taken) return std::unexpected(taken.error());
  // With the scheme of servers hosts are those of servers; only the port's default differs.
  const std::size_t behind = authority.rfind(']');
  const bool has_port =
      authority.find(':', behind == std::string_view::npos ? 0 : behind) != std::string_view::npos;
  const auto server = parse_server_url("http://" + std::string(authority));
  if (!server) return std::unexpected(server.error());
  url.host = server->host;
  if (has_port) url.port = server->port;
  if (!path.empty()) {
    const auto database = parse_database(path);
    if (!database) return fail("has no database of 0 .. 65535");
    url.database = *database;
  }
  auto taken = take_parameters(query, url, !path.empty());
  return taken ? Result<RedisUrl>(url) : std::unexpected(taken.error());
}

std::string shown(const RedisUrl& url) {
  const std::string database = std::to_string(url.database);
  if (!url.socket.empty()) return "unix://" + url.socket + "?db=" + database;
  const bool is_v6 = url.host.find(':') != std::string::npos;
  return "redis://" + (is_v6 ? "[" + url.host + "]" : url.host) + ":" + std::to_string(url.port) +
         "/" + database;
}

bool is_node_name(std::string_view name) {
  constexpr std::size_t kBytesMax = 64;
  return !name.empty() && name.size() <= kBytesMax && has_only(name, "._:-");
}

}  // namespace encore::config

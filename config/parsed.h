// Parsed: a text of a config together with what it says, so that it is parsed where it is checked
// and nowhere else. A value, thread-compatible.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "config/log_format.h"
#include "config/network.h"
#include "config/redis_url.h"
#include "config/rule_texts.h"
#include "config/shadow_policy.h"
#include "config/tls_texts.h"
#include "filter/hash.h"

namespace encore::config {

template <typename T, Result<T> (*kParse)(std::string_view)>
class Parsed {
 public:
  // Implicit: a text may stand where one is wanted. REQUIRES: parse(text) has a value.
  template <std::convertible_to<std::string_view> Text>
  Parsed(const Text& text) : Parsed(std::string(std::string_view(text)), parse(text)) {}  // NOLINT

  static Result<T> parse(std::string_view text) { return kParse(text); }

  const std::string& text() const noexcept { return text_; }
  const T& operator*() const noexcept { return value_; }
  const T* operator->() const noexcept { return &value_; }
  friend bool operator==(const Parsed& a, const Parsed& b) { return a.text_ == b.text_; }

 private:
  Parsed(std::string text, Result<T> value) : text_(std::move(text)) {
    ENCORE_CHECK(value.has_value(), "a text of a config says something valid");
    value_ = *std::move(value);
  }

  std::string text_;  // as written
  T value_{};
};

// "" is none.
template <typename T, Result<T> (*kParse)(std::string_view)>
Result<std::optional<T>> parse_or_none(std::string_view text) {
  if (text.empty()) return std::optional<T>();
  auto parsed = kParse(text);
  if (!parsed) return std::unexpected(parsed.error());
  return std::optional<T>(*std::move(parsed));
}

using EndpointText = Parsed<Endpoint, parse_listen_endpoint>;
using SocketModeText = Parsed<unsigned, parse_socket_mode>;
using OptionalEndpointText =
    Parsed<std::optional<Endpoint>, parse_or_none<Endpoint, parse_listen_endpoint>>;
using NameserverText = Parsed<Endpoint, parse_nameserver>;
using ServerText = Parsed<ServerEntry, parse_server>;
using OptionalUrlText =
    Parsed<std::optional<ServerUrl>, parse_or_none<ServerUrl, parse_server_url>>;
using OptionalRedisUrlText =
    Parsed<std::optional<RedisUrl>, parse_or_none<RedisUrl, parse_redis_url>>;
using CidrText = Parsed<Cidr, parse_cidr>;
using PortRangeText = Parsed<PortRange, parse_port_range>;
using ClientShareText = Parsed<ClientShare, parse_client_share>;
using StatusLifeText = Parsed<StatusLife, parse_status_life>;
using KeyQueryText = Parsed<KeyQuery, parse_key_query>;
using CookiesText = Parsed<Cookies, parse_cookies>;
using TlsPairText = Parsed<TlsPair, parse_tls_pair>;
using LogFormatText = Parsed<LogFormat, parse_log_format>;
using FieldLineText = Parsed<FieldLine, parse_field_line>;
using ShadowPolicyText = Parsed<ShadowPolicy, parse_shadow_policy>;
using SeedText =
    Parsed<std::optional<filter::Seed>, parse_or_none<filter::Seed, filter::parse_seed>>;

}  // namespace encore::config

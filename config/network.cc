#include "config/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/text.h"

namespace encore::config {
namespace {

using Bytes16 = std::array<std::uint8_t, 16>;

constexpr Bytes16 kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

struct Numeric {
  Bytes16 bytes{};
  bool v4 = false;
};

// A numeric address without brackets.
std::optional<Numeric> parse_numeric(std::string_view text) {
  const std::string terminated(text);
  if (terminated.size() != std::strlen(terminated.c_str())) return std::nullopt;
  Numeric result;
  if (inet_pton(AF_INET6, terminated.c_str(), result.bytes.data()) == 1) return result;
  in_addr v4{};
  if (inet_pton(AF_INET, terminated.c_str(), &v4) != 1) return std::nullopt;
  result.v4 = true;
  result.bytes = kMappedPrefix;
  std::memcpy(result.bytes.data() + 12, &v4, sizeof v4);
  return result;
}

std::optional<std::uint16_t> parse_number(std::string_view text, std::uint16_t max) {
  std::uint16_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || end != text.data() + text.size() || number > max) {
    return std::nullopt;
  }
  return number;
}

struct HostPort {
  std::string_view host;  // without brackets
  bool bracketed = false;
  std::optional<std::string_view> port;
};

std::optional<HostPort> split_host_port(std::string_view text) {
  HostPort result;
  std::string_view rest;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    result.host = text.substr(1, close - 1);
    result.bracketed = true;
    rest = text.substr(close + 1);
  } else {
    const auto colon = text.find(':');
    result.host = text.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view{} : text.substr(colon);
  }
  if (rest.empty()) return result;
  if (!rest.starts_with(':')) return std::nullopt;
  result.port = rest.substr(1);
  return result;
}

bool is_host_name(std::string_view host) {
  if (host.empty() || host.size() > 253 || host.starts_with('.') || host.starts_with('-')) {
    return false;
  }
  return std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  });
}

void clear_behind(Bytes16& bytes, unsigned prefix_bits) {
  for (unsigned bit = prefix_bits; bit < 128; ++bit) {
    bytes.at(bit / 8) &= static_cast<std::uint8_t>(~(0x80U >> (bit % 8)));
  }
}

std::string format_address(const Bytes16& bytes, bool v4) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (v4) {
    inet_ntop(AF_INET, bytes.data() + 12, text.data(), text.size());
  } else {
    inet_ntop(AF_INET6, bytes.data(), text.data(), text.size());
  }
  return text.data();
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text) {
  const auto parts = split_host_port(text);
  if (!parts || !parts->port) return fail("has no port");
  const auto port = parse_number(*parts->port, 65535);
  if (!port) return fail("has no port of 0 .. 65535");
  if (parts->host == "*" && !parts->bracketed) return Endpoint{"::", *port};
  const auto numeric = parse_numeric(parts->host);
  if (!numeric || numeric->v4 == parts->bracketed) return fail("is not a numeric address");
  return Endpoint{format_address(numeric->bytes, numeric->v4), *port};
}

namespace {

constexpr std::string_view kUnix = "unix:";

// Parses the text after "unix:".
Result<std::string> parse_socket_name(std::string_view name) {
  if (!name.starts_with('/') || name.ends_with('/')) return fail("has no absolute file name");
  if (name.size() > kSocketNameBytesMax) {
    return fail("has a file name of more than " + std::to_string(kSocketNameBytesMax) + " bytes");
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (std::ranges::any_of(name, is_control)) return fail("has a control character");
  return std::string(name);
}

}  // namespace

Result<Endpoint> parse_listen_endpoint(std::string_view text) {
  if (!text.starts_with(kUnix)) return parse_endpoint(text);
  auto name = parse_socket_name(text.substr(kUnix.size()));
  if (!name) return std::unexpected(name.error());
  Endpoint endpoint;
  endpoint.socket = *std::move(name);
  return endpoint;
}

Result<unsigned> parse_socket_mode(std::string_view text) {
  constexpr unsigned kAll = 0777;
  unsigned mode = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (status != std::errc{} || end != text.data() + text.size() || mode > kAll) {
    return fail("is not an octal number up to 0777");
  }
  return mode;
}

Result<Endpoint> parse_nameserver(std::string_view text) {
  constexpr std::uint16_t kDnsPort = 53;
  if (const auto numeric = parse_numeric(text)) {
    return Endpoint{format_address(numeric->bytes, numeric->v4), kDnsPort};
  }
  auto endpoint = text.starts_with('*') ? fail("is not a numeric address") : parse_endpoint(text);
  if (endpoint && endpoint->port == 0) return fail("has no port of 1 .. 65535");
  return endpoint;
}

std::string to_string(const Endpoint& endpoint) {
  if (!endpoint.socket.empty()) return std::string(kUnix) + endpoint.socket;
  const bool v6 = endpoint.address.find(':') != std::string::npos;
  return (v6 ? "[" + endpoint.address + "]" : endpoint.address) + ":" +
         std::to_string(endpoint.port);
}

Result<ServerUrl> parse_server_url(std::string_view text) {
  ServerUrl url;
  if (text.starts_with("https://")) {
    url.tls = true;
    url.port = 443;
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    text.remove_prefix(7);
  } else {
    return fail("is not an http or https URL");
  }
  if (text.ends_with('/')) text.remove_suffix(1);
  if (text.find_first_of("/?#") != std::string_view::npos) return fail("has a path");
  if (text.find('@') != std::string_view::npos) return fail("has user information");
  const auto parts = split_host_port(text);
  if (!parts) return fail("has no valid host");
  const auto numeric = parse_numeric(parts->host);
  const bool valid = parts->bracketed ? (numeric && !numeric->v4) : is_host_name(parts->host);
  if (!valid) return fail("has no valid host");
  url.host = numeric ? format_address(numeric->bytes, numeric->v4) : lower_ascii(parts->host);
  if (parts->port) {
    const auto port = parse_number(*parts->port, 65535);
    if (!port || *port == 0) return fail("has no port of 1 .. 65535");
    url.port = *port;
  }
  return url;
}

Result<ServerUrl> parse_origin_server(std::string_view text) {
  if (!text.starts_with(kUnix)) return parse_server_url(text);
  auto name = parse_socket_name(text.substr(kUnix.size()));
  if (!name) return std::unexpected(name.error());
  ServerUrl url;
  url.host = "localhost";
  url.socket = *std::move(name);
  return url;
}

Result<ServerEntry> parse_server(std::string_view text) {
  const auto take_word = [&text] {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    return word;
  };
  if (text.starts_with(' ')) return fail("is not an http or https URL");
  const auto url = parse_origin_server(take_word());
  if (!url) return std::unexpected(url.error());
  ServerEntry entry;
  static_cast<ServerUrl&>(entry) = *url;
  bool weighed = false;
  for (std::string_view word = take_word(); !word.empty(); word = take_word()) {
    if (word == "backup" && !entry.backup) {
      entry.backup = true;
    } else if (word.starts_with("weight=") && !weighed) {
      const auto weight = parse_number(word.substr(7), kWeightMax);
      if (!weight || *weight == 0) {
        return fail("has no weight of 1 .. " + std::to_string(kWeightMax));
      }
      entry.weight = *weight;
      weighed = true;
    } else {
      return fail("has \"" + std::string(word) + "\" behind its URL");
    }
  }
  return entry;
}

bool Cidr::contains(const std::array<std::uint8_t, 16>& other) const noexcept {
  const unsigned whole = prefix_bits / 8U;
  if (!std::equal(address.begin(), address.begin() + whole, other.begin())) return false;
  const unsigned rest = prefix_bits % 8U;
  if (rest == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xff00U >> rest);
  return ((address.at(whole) ^ other.at(whole)) & mask) == 0;
}

Result<Cidr> parse_cidr(std::string_view text) {
  const auto slash = text.find('/');
  const auto numeric = parse_numeric(text.substr(0, slash));
  if (!numeric) return fail("is not an address");
  const unsigned offset = numeric->v4 ? 96 : 0;
  Cidr cidr{numeric->bytes, 128};
  if (slash != std::string_view::npos) {
    const auto max = static_cast<std::uint16_t>(128 - offset);
    const auto prefix = parse_number(text.substr(slash + 1), max);
    if (!prefix) return fail("has no prefix of 0 .. " + std::to_string(max));
    cidr.prefix_bits = static_cast<std::uint8_t>(*prefix + offset);
  }
  Bytes16 cleared = cidr.address;
  clear_behind(cleared, cidr.prefix_bits);
  if (cleared != cidr.address) {
    return fail("has bits set after its prefix (" + format_address(cleared, numeric->v4) + "/" +
                std::string(text.substr(slash + 1)) + "?)");
  }
  return cidr;
}

Result<PortRange> parse_port_range(std::string_view text) {
  const auto dash = text.find('-');
  const auto first = parse_number(text.substr(0, dash), 65535);
  const auto last =
      dash == std::string_view::npos ? first : parse_number(text.substr(dash + 1), 65535);
  if (!first || !last || *first == 0 || *last == 0) return fail("has no port of 1 .. 65535");
  if (*last < *first) return fail("ends before its beginning");
  return PortRange{*first, *last};
}

Result<ClientShare> parse_client_share(std::string_view text) {
  constexpr std::uint32_t kConnectionsMax = 1U << 24U;
  const bool is_percentage = text.ends_with('%');
  if (is_percentage) text.remove_suffix(1);
  std::uint32_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || end != text.data() + text.size()) {
    return fail("is neither a percentage nor a number");
  }
  if (!is_percentage) {
    if (number > kConnectionsMax) return fail("is too large");
    return ClientShare{.connections = number};
  }
  if (number == 0 || number > 100) return fail("is not a percentage of 1 .. 100");
  return ClientShare{.percent = number};
}

}  // namespace encore::config

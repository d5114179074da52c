#include "proxy/net/proxy_header.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace encore::net {
namespace {

using Status = ProxyHeaderStatus;

constexpr std::string_view kText = "PROXY ";
// With CRLF; the longest there can be.
constexpr std::size_t kTextBytesMax = 107;
constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
constexpr std::size_t kFixedBytes = 16;

constexpr unsigned kVersion2 = 2;
constexpr unsigned kLocal = 0;
constexpr unsigned kProxied = 1;
constexpr unsigned kIpv4 = 1;
constexpr unsigned kIpv6 = 2;
constexpr unsigned kUnix = 3;
constexpr unsigned kProtocolMax = 2;  // unspecified, stream, datagram
constexpr std::uint8_t kTlvSsl = 0x20;
constexpr std::uint8_t kSslClientTls = 0x01;

std::uint8_t byte_at(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint8_t>(bytes[at]);
}
std::size_t number_at(std::string_view bytes, std::size_t at) {
  return std::size_t{byte_at(bytes, at)} << 8U | byte_at(bytes, at + 1);
}

// A decimal number as it is written canonically: no sign, no needless zero.
std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  return port;
}

// Takes what is in front of the next space. Empty: there is nothing, or no space behind it.
std::string_view next_word(std::string_view& line) {
  const std::size_t end = line.find(' ');
  if (end == std::string_view::npos) return {};
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end + 1);
  return word;
}

// "TCP4 SOURCE DESTINATION PORT PORT" or "UNKNOWN" with anything behind it.
bool read_line(std::string_view line, ProxyHeader& header) {
  if (line == "UNKNOWN" || line.starts_with("UNKNOWN ")) return true;
  const std::string_view family = next_word(line);
  if (family != "TCP4" && family != "TCP6") return false;
  const std::string_view source = next_word(line);
  const std::string_view destination = next_word(line);
  const auto source_port = parse_port(next_word(line));
  if (!source_port || !parse_port(line)) return false;
  const bool v4 = family == "TCP4";
  const auto parsed = [v4](std::string_view text, std::uint16_t port) -> std::optional<Address> {
    if (text.starts_with('[')) return std::nullopt;
    auto address = Address::parse_ip(text, port);
    if (address && address->is_v4() != v4) return std::nullopt;
    return address;
  };
  header.source = parsed(source, *source_port);
  if (!header.source || !parsed(destination, 0)) return false;
  header.source = header.source->canonical();
  return true;
}

Status parse_text(std::string_view input, ProxyHeader& header) {
  const std::string_view looked_at = input.substr(0, kTextBytesMax);
  const std::size_t end = looked_at.find('\n');
  if (end == std::string_view::npos) {
    // A CR in front of anything but LF ends all hope.
    const std::size_t cr = looked_at.find('\r');
    const bool hopeless = looked_at.size() == kTextBytesMax ||
                          (cr != std::string_view::npos && cr + 1 != looked_at.size());
    return hopeless ? Status::kBad : Status::kIncomplete;
  }
  if (looked_at[end - 1] != '\r') return Status::kBad;
  const std::string_view line = looked_at.substr(0, end - 1);
  if (line.find('\r') != std::string_view::npos) return Status::kBad;
  if (!read_line(line.substr(kText.size()), header)) return Status::kBad;
  header.size = end + 1;
  return Status::kComplete;
}

Address address_v4(std::string_view bytes, std::size_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<std::uint16_t>(port));
  std::memcpy(&v4.sin_addr, bytes.data(), sizeof v4.sin_addr);
  return Address(v4);
}

Address address_v6(std::string_view bytes, std::size_t port) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<std::uint16_t>(port));
  std::memcpy(&v6.sin6_addr, bytes.data(), sizeof v6.sin6_addr);
  return Address(v6).canonical();
}

// Type, length and value, one behind the other. False where they do not fill it.
bool read_extensions(std::string_view bytes, ProxyHeader& header) {
  constexpr std::size_t kHead = 3;
  while (!bytes.empty()) {
    if (bytes.size() < kHead) return false;
    const std::uint8_t type = byte_at(bytes, 0);
    const std::size_t length = number_at(bytes, 1);
    bytes.remove_prefix(kHead);
    if (bytes.size() < length) return false;
    if (type == kTlvSsl) {
      // Flags, what came of the certificate, and extensions of its own.
      if (length < 5) return false;
      header.secure = (byte_at(bytes, 0) & kSslClientTls) != 0;
    }
    bytes.remove_prefix(length);
  }
  return true;
}

// Reads the addresses behind the fixed part. Bytes that a family does not need are skipped.
bool read_addresses(unsigned family, std::string_view bytes, ProxyHeader& header) {
  constexpr std::size_t kBytes4 = 12;
  constexpr std::size_t kBytes6 = 36;
  constexpr std::size_t kBytesUnix = 216;
  switch (family) {
    case kIpv4:
      if (bytes.size() < kBytes4) return false;
      header.source = address_v4(bytes, number_at(bytes, 8));
      return read_extensions(bytes.substr(kBytes4), header);
    case kIpv6:
      if (bytes.size() < kBytes6) return false;
      header.source = address_v6(bytes, number_at(bytes, 32));
      return read_extensions(bytes.substr(kBytes6), header);
    case kUnix:
      return bytes.size() >= kBytesUnix && read_extensions(bytes.substr(kBytesUnix), header);
    default:
      return family == 0;
  }
}

Status parse_binary(std::string_view input, ProxyHeader& header) {
  if (input.size() < kFixedBytes) {
    if (input.size() > kSignature.size()) {
      const unsigned version = byte_at(input, 12) >> 4U;
      const unsigned command = byte_at(input, 12) & 0xfU;
      if (version != kVersion2 || command > kProxied) return Status::kBad;
    }
    return Status::kIncomplete;
  }
  const unsigned version = byte_at(input, 12) >> 4U;
  const unsigned command = byte_at(input, 12) & 0xfU;
  const unsigned family = byte_at(input, 13) >> 4U;
  const unsigned protocol = byte_at(input, 13) & 0xfU;
  const std::size_t size = kFixedBytes + number_at(input, 14);
  if (version != kVersion2 || command > kProxied || family > kUnix || protocol > kProtocolMax ||
      size > kProxyHeaderBytesMax) {
    return Status::kBad;
  }
  if (input.size() < size) return Status::kIncomplete;
  header.size = size;
  if (command == kLocal) return Status::kComplete;
  const std::string_view rest = input.substr(kFixedBytes, size - kFixedBytes);
  return read_addresses(family, rest, header) ? Status::kComplete : Status::kBad;
}

// True if `input` begins with `begin`, or could yet.
bool could_begin_with(std::string_view input, std::string_view begin) {
  const std::size_t common = std::min(input.size(), begin.size());
  return input.substr(0, common) == begin.substr(0, common);
}

}  // namespace

ProxyHeaderStatus parse_proxy_header(std::string_view input, ProxyHeader& header) {
  ProxyHeader read;
  Status status = Status::kBad;
  if (could_begin_with(input, kText)) {
    status = input.size() < kText.size() ? Status::kIncomplete : parse_text(input, read);
  } else if (could_begin_with(input, kSignature)) {
    status = parse_binary(input, read);
  }
  if (status == Status::kComplete) header = read;
  return status;
}

}  // namespace encore::net

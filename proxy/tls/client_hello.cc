#include "proxy/tls/client_hello.h"

#include <algorithm>
#include <bitset>
#include <optional>

#include "base/text.h"

namespace encore::tls {
namespace {

constexpr std::uint8_t kHandshakeRecord = 22;
constexpr std::uint8_t kMajorVersion = 3;
constexpr std::size_t kRecordBytesMax = 1 << 14;
constexpr std::uint8_t kClientHelloType = 1;
constexpr std::size_t kMessageHeaderBytes = 4;
constexpr std::size_t kRandomBytes = 32;
constexpr std::size_t kSessionIdBytesMax = 32;
constexpr std::size_t kNameBytesMax = 253;
constexpr std::size_t kLabelBytesMax = 63;
// Browsers say two; what says more than this is no client of the web.
constexpr std::size_t kProtocolsMax = 64;

constexpr std::uint64_t kServerNameExtension = 0;
constexpr std::uint64_t kAlpnExtension = 16;
constexpr std::uint64_t kSupportedVersionsExtension = 43;
constexpr std::uint64_t kHostName = 0;

std::uint8_t byte_of(char c) { return static_cast<std::uint8_t>(c); }

// Takes numbers and vectors from the front of a text; what does not fit empties it for good.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool is_good() const { return good_; }
  bool is_at_end() const { return rest_.empty(); }
  // Good, and nothing is left.
  bool is_done() const { return good_ && rest_.empty(); }

  std::string_view bytes(std::size_t count) {
    if (count > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::uint64_t number(std::size_t size) {
    std::uint64_t value = 0;
    for (const char c : bytes(size)) value = value << 8U | byte_of(c);
    return value;
  }
  // A vector behind a length of so many bytes (RFC 8446 3.4).
  std::string_view vector(std::size_t length_size, std::size_t min, std::size_t max) {
    const std::uint64_t size = number(length_size);
    if (!good_ || size < min || size > max) {
      fail();
      return {};
    }
    return bytes(static_cast<std::size_t>(size));
  }
  void fail() {
    good_ = false;
    rest_ = {};
  }

 private:
  std::string_view rest_;
  bool good_ = true;
};

bool is_label(std::string_view label) {
  return !label.empty() && label.size() <= kLabelBytesMax && label.front() != '-' &&
         label.back() != '-' && std::ranges::all_of(label, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
         });
}

// The only name of a host in a list of one (RFC 6066 3 knows no other kind).
bool read_server_name(std::string_view extension, ClientHello& hello) {
  Reader reader(extension);
  Reader list(reader.vector(2, 1, 0xffff));
  const std::uint64_t kind = list.number(1);
  const std::string_view name = list.vector(2, 1, kNameBytesMax);
  if (!reader.is_done() || !list.is_done() || kind != kHostName) return false;
  hello.server_name = lower_ascii(name);
  return is_server_name(hello.server_name);
}

bool read_protocols(std::string_view extension, ClientHello& hello) {
  Reader reader(extension);
  Reader list(reader.vector(2, 2, 0xffff));
  while (!list.is_at_end()) {
    const std::string_view protocol = list.vector(1, 1, 255);
    if (!list.is_good() || hello.protocols.size() == kProtocolsMax) return false;
    hello.protocols.emplace_back(protocol);
  }
  return reader.is_done() && list.is_good();
}

bool read_versions(std::string_view extension, ClientHello& hello) {
  Reader reader(extension);
  Reader list(reader.vector(1, 2, 254));
  hello.versions.clear();
  while (!list.is_at_end()) {
    hello.versions.push_back(static_cast<std::uint16_t>(list.number(2)));
  }
  return reader.is_done() && list.is_good();
}

bool read_extension(std::uint64_t type, std::string_view content, ClientHello& hello) {
  switch (type) {
    case kServerNameExtension:
      return read_server_name(content, hello);
    case kAlpnExtension:
      return read_protocols(content, hello);
    case kSupportedVersionsExtension:
      return read_versions(content, hello);
    default:
      return true;
  }
}

bool read_extensions(std::string_view text, ClientHello& hello) {
  Reader reader(text);
  std::bitset<0x10000> seen;
  while (!reader.is_at_end()) {
    const std::uint64_t type = reader.number(2);
    const std::string_view content = reader.vector(2, 0, 0xffff);
    // None comes twice (RFC 8446 4.2).
    if (!reader.is_good() || seen.test(type)) return false;
    seen.set(type);
    if (!read_extension(type, content, hello)) return false;
  }
  return reader.is_good();
}

// Reads the message after its own header, which has its length.
bool read_body(std::string_view body, ClientHello& hello) {
  Reader reader(body);
  const std::uint64_t version = reader.number(2);
  (void)reader.bytes(kRandomBytes);
  (void)reader.vector(1, 0, kSessionIdBytesMax);
  const std::string_view ciphers = reader.vector(2, 2, 0xfffe);
  (void)reader.vector(1, 1, 255);
  if (!reader.is_good() || version >> 8U != kMajorVersion || ciphers.size() % 2 != 0) return false;
  hello.versions.push_back(static_cast<std::uint16_t>(version));
  if (reader.is_at_end()) return true;  // there were times without extensions
  const std::string_view extensions = reader.vector(2, 0, 0xffff);
  return reader.is_done() && read_extensions(extensions, hello);
}

// The message's length by the bytes of it that are there; nothing: not known yet. More than may be:
// it is none.
std::optional<std::size_t> message_bytes(std::string_view message) {
  constexpr std::size_t kNone = kHelloBytesMax + 1;
  if (message.empty()) return std::nullopt;
  if (byte_of(message.front()) != kClientHelloType) return kNone;
  if (message.size() < kMessageHeaderBytes) return std::nullopt;
  Reader reader(message.substr(1, kMessageHeaderBytes - 1));
  const std::uint64_t body = reader.number(kMessageHeaderBytes - 1);
  if (body > kHelloBytesMax - kMessageHeaderBytes) return kNone;
  return kMessageHeaderBytes + static_cast<std::size_t>(body);
}

// Checks a record's header, however much of it is there.
HelloStatus check_header(std::string_view header) {
  if (!header.empty() && byte_of(header[0]) != kHandshakeRecord) return HelloStatus::kNotTls;
  if (header.size() > 1 && byte_of(header[1]) != kMajorVersion) return HelloStatus::kNotTls;
  if (header.size() < kRecordHeaderBytes) return HelloStatus::kIncomplete;
  const std::size_t size = std::size_t{byte_of(header[3])} << 8U | byte_of(header[4]);
  // No handshake is cut into nothing (RFC 8446 5.1).
  return size == 0 || size > kRecordBytesMax ? HelloStatus::kMalformed : HelloStatus::kComplete;
}

// Gathers the contents of the records, as far as they are there and until the message is whole.
HelloStatus gather(std::string_view input, std::string& message) {
  for (std::size_t record = 0; record < kHelloRecordsMax; ++record) {
    const std::string_view header = input.substr(0, kRecordHeaderBytes);
    const HelloStatus status = check_header(header);
    if (status != HelloStatus::kComplete) {
      // Behind the first record of one it is TLS, but no message may be cut by another kind.
      return record > 0 && status == HelloStatus::kNotTls ? HelloStatus::kMalformed : status;
    }
    const std::size_t size = std::size_t{byte_of(header[3])} << 8U | byte_of(header[4]);
    const std::string_view content = input.substr(kRecordHeaderBytes, size);
    message += content;
    const std::optional<std::size_t> needed = message_bytes(message);
    // The message ends where its record does: keys change behind it (RFC 8446 5.1).
    const std::size_t there = message.size() + (size - content.size());
    if (needed && (*needed > kHelloBytesMax || there > *needed)) return HelloStatus::kMalformed;
    if (content.size() < size) return HelloStatus::kIncomplete;
    if (needed && there == *needed) return HelloStatus::kComplete;
    input.remove_prefix(kRecordHeaderBytes + size);
  }
  return HelloStatus::kMalformed;
}

}  // namespace

bool ClientHello::offers(std::string_view protocol) const {
  return std::ranges::find(protocols, protocol) != protocols.end();
}

bool ClientHello::speaks(std::uint16_t version) const {
  return std::ranges::find(versions, version) != versions.end();
}

bool is_server_name(std::string_view name) {
  if (name.empty() || name.size() > kNameBytesMax) return false;
  std::string_view label;
  for (std::size_t start = 0; start <= name.size(); start += label.size() + 1) {
    label = name.substr(start, name.find('.', start) - start);
    if (!is_label(label)) return false;
  }
  // Some software reads a name that ends with a number as an IPv4 address (URL Standard, 3.5).
  const bool has_letter = std::ranges::any_of(label, [](char c) { return c < '0' || c > '9'; });
  const bool is_hex = label.starts_with("0x") &&
                      label.find_first_not_of("0123456789abcdef", 2) == std::string_view::npos;
  return has_letter && !is_hex;
}

HelloStatus parse_client_hello(std::string_view input, ClientHello& hello) {
  std::string message;
  const HelloStatus status = gather(input, message);
  if (status != HelloStatus::kComplete) return status;
  ClientHello read;
  if (!read_body(std::string_view(message).substr(kMessageHeaderBytes), read)) {
    return HelloStatus::kMalformed;
  }
  hello = std::move(read);
  return HelloStatus::kComplete;
}

}  // namespace encore::tls

#include "proxy/h2/field_encoder.h"

#include <array>
#include <charconv>
#include <cstring>

#include "proxy/http/field_id.h"
#include "proxy/http/framing.h"
#include "proxy/http/list.h"
#include "proxy/http/scan.h"

namespace encore::h2 {
namespace {

using http::FieldId;

struct StaticName {
  std::string_view name;
  std::uint8_t index;
};

// Names of the static table (RFC 7541 appendix A), each with its first index.
constexpr std::array<StaticName, 50> kStaticNames = {{
    {":authority", 1},
    {":method", 2},
    {":path", 4},
    {":scheme", 6},
    {":status", 8},
    {"accept-encoding", 16},
    {"accept-language", 17},
    {"accept-ranges", 18},
    {"accept", 19},
    {"access-control-allow-origin", 20},
    {"age", 21},
    {"allow", 22},
    {"authorization", 23},
    {"cache-control", 24},
    {"content-disposition", 25},
    {"content-encoding", 26},
    {"content-language", 27},
    {"content-length", 28},
    {"content-location", 29},
    {"content-range", 30},
    {"content-type", 31},
    {"cookie", 32},
    {"date", 33},
    {"etag", 34},
    {"expect", 35},
    {"expires", 36},
    {"from", 37},
    {"host", 38},
    {"if-match", 39},
    {"if-modified-since", 40},
    {"if-none-match", 41},
    {"if-range", 42},
    {"if-unmodified-since", 43},
    {"last-modified", 44},
    {"link", 45},
    {"location", 46},
    {"max-forwards", 47},
    {"proxy-authenticate", 48},
    {"proxy-authorization", 49},
    {"range", 50},
    {"referer", 51},
    {"refresh", 52},
    {"retry-after", 53},
    {"server", 54},
    {"set-cookie", 55},
    {"strict-transport-security", 56},
    {"user-agent", 58},
    {"vary", 59},
    {"via", 60},
    {"www-authenticate", 61},
}};

constexpr std::size_t kIds = static_cast<std::size_t>(FieldId::kCount_);

std::uint8_t index_of(std::string_view name) {
  for (const StaticName& each : kStaticNames) {
    if (each.name == name) return each.index;
  }
  return 0;
}

std::array<std::uint8_t, kIds> indices_by_id() {
  std::array<std::uint8_t, kIds> indices = {};
  for (std::size_t id = 1; id < kIds; ++id) {
    indices[id] = index_of(http::field_name(static_cast<FieldId>(id)));
  }
  return indices;
}
// 0: the static table does not have the name.
const std::array<std::uint8_t, kIds> kIndices = indices_by_id();

constexpr http::FieldSet kOfConnections = {FieldId::kConnection,      FieldId::kKeepAlive,
                                           FieldId::kProxyConnection, FieldId::kTransferEncoding,
                                           FieldId::kUpgrade,         FieldId::kHttp2Settings};

// Must enter no table on the way either (RFC 7541 7.1.3).
constexpr http::FieldSet kSecrets = {FieldId::kAuthorization, FieldId::kProxyAuthorization,
                                     FieldId::kCookie, FieldId::kSetCookie};

constexpr std::uint8_t kLiteral = 0x00;
constexpr std::uint8_t kNeverIndexed = 0x10;
constexpr std::uint8_t kIndexed = 0x80;

// An integer behind the first bits of a byte (RFC 7541 5.1).
void append_integer(std::uint8_t first, unsigned prefix_bits, std::size_t value,
                    std::string& block) {
  const std::size_t limit = (std::size_t{1} << prefix_bits) - 1;
  if (value < limit) {
    block += static_cast<char>(first | value);
    return;
  }
  block += static_cast<char>(first | limit);
  for (value -= limit; value >= 128; value >>= 7U) block += static_cast<char>(value % 128 + 128);
  block += static_cast<char>(value);
}

void append_string(std::string_view text, std::string& block) {
  append_integer(0, 7, text.size(), block);
  block += text;
}

void append_lower(std::string_view name, std::string& block) {
  append_integer(0, 7, name.size(), block);
  for (const char c : name) block += http::to_lower(c);
}

void append_literal(std::uint8_t kind, std::uint8_t index, std::string_view value,
                    std::string& block) {
  append_integer(kind, 4, index, block);
  append_string(value, block);
}

void append_field(std::string_view name, std::string_view value, std::string& block,
                  std::optional<std::uint64_t>& length) {
  const FieldId id = http::classify_field(name);
  if (kOfConnections.has(id)) return;
  // The one value that it may have (RFC 9113 8.2.2).
  if (id == FieldId::kTe && !http::equals_lower(value, "trailers")) return;
  const std::uint8_t kind = kSecrets.has(id) ? kNeverIndexed : kLiteral;
  const std::uint8_t index = kIndices[static_cast<std::size_t>(id)];
  if (index != 0) {
    append_literal(kind, index, value, block);
  } else {
    block += static_cast<char>(kind);
    append_lower(name, block);
    append_string(value, block);
  }
  std::uint64_t read = 0;
  if (id == FieldId::kContentLength && http::parse_decimal(value, read)) length = read;
}

// The line at the front, without its end, which it is shortened by.
std::string_view take_line(std::string_view& lines) {
  const std::size_t end = std::min(lines.find('\r'), lines.size());
  const std::string_view line = lines.substr(0, end);
  lines.remove_prefix(std::min(end + 2, lines.size()));
  return line;
}

}  // namespace

void append_no_table(std::string& block) { block += '\x20'; }

void append_status(unsigned status, std::string& block) {
  constexpr std::array<unsigned, 7> kKnown = {200, 204, 206, 304, 400, 404, 500};
  for (std::size_t i = 0; i < kKnown.size(); ++i) {
    if (kKnown[i] == status) {
      block += static_cast<char>(kIndexed | (8 + i));
      return;
    }
  }
  char digits[10];
  const char* const end = std::to_chars(digits, digits + sizeof digits, status).ptr;
  append_literal(kLiteral, 8, {digits, static_cast<std::size_t>(end - digits)}, block);
}

void append_pseudo(std::string_view name, std::string_view value, std::string& block) {
  const std::uint8_t index = index_of(name);
  if (index != 0) {
    append_literal(kLiteral, index, value, block);
  } else {
    block += static_cast<char>(kLiteral);
    append_string(name, block);
    append_string(value, block);
  }
}

void append_fields(std::string_view lines, std::string& block,
                   std::optional<std::uint64_t>& length) {
  while (!lines.empty()) {
    const std::string_view line = take_line(lines);
    const std::size_t colon = line.find(':');
    if (colon == 0 || colon == std::string_view::npos) continue;
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) {
      value.remove_prefix(1);
    }
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
    append_field(line.substr(0, colon), value, block, length);
  }
}

unsigned append_response(std::span<const std::string_view> pieces, std::string& block,
                         std::optional<std::uint64_t>& length) {
  if (pieces.empty()) return 0;
  std::string_view first = pieces.front();
  const std::string_view status_line = take_line(first);
  unsigned status = 0;
  // "HTTP/1.1 " is as long as any other version's text.
  constexpr std::size_t kCode = 9;
  if (status_line.size() < kCode + 3) return 0;
  std::from_chars(status_line.data() + kCode, status_line.data() + kCode + 3, status);
  if (status < 100) return 0;
  append_status(status, block);
  append_fields(first, block, length);
  for (const std::string_view piece : pieces.subspan(1)) append_fields(piece, block, length);
  return status;
}

}  // namespace encore::h2

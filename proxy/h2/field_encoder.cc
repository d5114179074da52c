#include "proxy/h2/field_encoder.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "proxy/http/field_id.h"
#include "proxy/http/framing.h"
#include "proxy/http/list.h"

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

constexpr http::FieldSet kHopByHopFields = {FieldId::kConnection,      FieldId::kKeepAlive,
                                            FieldId::kProxyConnection, FieldId::kTransferEncoding,
                                            FieldId::kUpgrade,         FieldId::kHttp2Settings};

// Must enter no table on the way either (RFC 7541 7.1.3).
constexpr http::FieldSet kSecrets = {FieldId::kAuthorization, FieldId::kProxyAuthorization,
                                     FieldId::kCookie, FieldId::kSetCookie};

constexpr std::uint8_t kLiteral = 0x00;
constexpr std::uint8_t kNeverIndexed = 0x10;
constexpr std::uint8_t kIndexed = 0x80;

// Writes into room that is there: appending byte by byte would take a third of a block's time.
class Writer {
 public:
  explicit Writer(char* at) : at_(at) {}
  char* at() const { return at_; }

  void byte(std::uint8_t value) { *at_++ = static_cast<char>(value); }
  // An integer behind the first bits of a byte (RFC 7541 5.1).
  void integer(std::uint8_t first, unsigned prefix_bits, std::size_t value) {
    const std::size_t limit = (std::size_t{1} << prefix_bits) - 1;
    if (value < limit) {
      byte(static_cast<std::uint8_t>(first | value));
      return;
    }
    byte(static_cast<std::uint8_t>(first | limit));
    for (value -= limit; value >= 128; value >>= 7U) {
      byte(static_cast<std::uint8_t>(value % 128 + 128));
    }
    byte(static_cast<std::uint8_t>(value));
  }
  void string(std::string_view text) {
    integer(0, 7, text.size());
    at_ = std::copy(text.begin(), text.end(), at_);
  }
  void lower(std::string_view text) {
    integer(0, 7, text.size());
    for (const char c : text) *at_++ = http::to_lower(c);
  }
  void field(std::uint8_t kind, std::uint8_t index, std::string_view name, std::string_view value) {
    integer(kind, 4, index);
    if (index == 0) lower(name);
    string(value);
  }

 private:
  char* at_;
};

// Bytes that the length of a string takes at most, beyond the first: strings are below 2^28 bytes.
constexpr std::size_t kLengthBytesMax = 4;

// Bytes that these lines take at most: a field costs no more than its colon and its line's end do,
// but where its name or its value has 127 bytes or more.
std::size_t encoded_bytes_max(std::size_t bytes) {
  return bytes + (bytes / 127 + 1) * 2 * kLengthBytesMax;
}

// Appends what `write` writes, of at most `bytes_max` bytes.
template <typename Write>
void append_written(std::size_t bytes_max, std::string& block, Write write) {
  const std::size_t before = block.size();
  block.resize_and_overwrite(before + bytes_max, [&](char* bytes, std::size_t) {
    Writer writer(bytes + before);
    write(writer);
    return static_cast<std::size_t>(writer.at() - bytes);
  });
}

void write_field(std::string_view name, std::string_view value, Writer& writer,
                 std::optional<std::uint64_t>& length) {
  const FieldId id = http::classify_field(name);
  if (kHopByHopFields.has(id)) return;
  // The one value that it may have (RFC 9113 8.2.2).
  if (id == FieldId::kTe && !http::equals_lower(value, "trailers")) return;
  writer.field(kSecrets.has(id) ? kNeverIndexed : kLiteral, kIndices[static_cast<std::size_t>(id)],
               name, value);
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

std::string_view trim_spaces(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
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
  append_pseudo(":status", {digits, static_cast<std::size_t>(end - digits)}, block);
}

void append_pseudo(std::string_view name, std::string_view value, std::string& block) {
  append_written(encoded_bytes_max(name.size() + value.size() + 4), block,
                 [&](Writer& writer) { writer.field(kLiteral, index_of(name), name, value); });
}

void append_fields(std::string_view lines, std::string& block,
                   std::optional<std::uint64_t>& length) {
  append_written(encoded_bytes_max(lines.size()), block, [&](Writer& writer) {
    while (!lines.empty()) {
      const std::string_view line = take_line(lines);
      const std::size_t colon = line.find(':');
      if (colon == 0 || colon == std::string_view::npos) continue;
      const std::string_view value = trim_spaces(line.substr(colon + 1));
      write_field(line.substr(0, colon), value, writer, length);
    }
  });
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

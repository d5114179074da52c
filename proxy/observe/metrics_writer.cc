#include "proxy/observe/metrics_writer.h"

#include <cmath>
#include <cstddef>

namespace encore::server {
namespace {

bool continues(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
}

// How many bytes of a character of UTF-8 (RFC 3629) the text begins with; 0: with none.
std::size_t character_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const auto second = static_cast<unsigned char>(text.size() > 1 ? text[1] : '\0');
  std::size_t bytes = 0;
  if (first >= 0xC2 && first <= 0xDF) bytes = 2;
  if (first >= 0xE0 && first <= 0xEF) bytes = 3;
  if (first >= 0xF0 && first <= 0xF4) bytes = 4;
  // Longer than need be, surrogates, beyond the last one.
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) {
    return 0;
  }
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!continues(text, i)) return 0;
  }
  return bytes;
}

}  // namespace

std::string label_value(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const char c = text[0];
    if (bytes == 0) {
      out += fmt::format("\\\\x{:02X}", static_cast<unsigned char>(c));
    } else if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return out;
}

void HistogramWriter::bucket(double bound, std::uint64_t count) {
  seen_ += count;
  const std::string end = std::isinf(bound) ? "+Inf" : fmt::format("{}", bound);
  out_.sample(fmt::format("{}_bucket", name_),
              fmt::format("{}{}le=\"{}\"", labels_, labels_.empty() ? "" : ",", end), seen_);
}

}  // namespace encore::server

#include "proxy/http/raw_bytes.h"

namespace encore::http {

void append_encoded(std::string_view text, std::string& out) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : text) {
    if (!is_beyond_ascii(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 0xfU];
  }
}

}  // namespace encore::http

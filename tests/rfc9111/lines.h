// Heads as the tables write them, with '\n' between lines, in the bytes that a peer sends.
#pragma once

#include <string>

namespace encore::http {

inline std::string crlf(const std::string& lines) {
  std::string out;
  for (const char c : lines) out += c == '\n' ? std::string("\r\n") : std::string(1, c);
  return out + "\r\n\r\n";
}

}  // namespace encore::http

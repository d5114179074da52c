#include "proxy/client/websocket_key.h"

#include <sys/random.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace encore::server {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string make_websocket_key_line() {
  // The last two bytes are padding.
  std::array<std::uint8_t, 18> bytes = {};
  constexpr std::size_t kBytes = 16;
  if (::getrandom(bytes.data(), kBytes, 0) != static_cast<ssize_t>(kBytes)) return {};
  std::string line = "sec-websocket-key: ";
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::uint32_t three = static_cast<std::uint32_t>(bytes[at]) << 16U |
                                static_cast<std::uint32_t>(bytes[at + 1]) << 8U | bytes[at + 2];
    for (int shift = 18; shift >= 0; shift -= 6) line += kAlphabet[(three >> shift) & 63U];
  }
  line.replace(line.size() - 2, 2, "==");
  return line += "\r\n";
}

}  // namespace encore::server

#include "proxy/observe/request_steps.h"

#include <algorithm>
#include <string>

#include "proxy/observe/log.h"

namespace encore::server {

void log_step(std::string_view request_id, std::initializer_list<std::string_view> parts) {
  constexpr std::size_t kLineBytesMax = 2048;
  std::string line = "request ";
  line += request_id.empty() ? "-" : request_id;
  line += ": ";
  for (const std::string_view part : parts) line += part;
  if (line.size() > kLineBytesMax) {
    line.resize(kLineBytesMax);
    line += "...";
  }
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c >= 0x7f || c < 0; }, '?');
  log::debug("{}", line);
}

}  // namespace encore::server

// The configuration: any bytes as a file and as --set values. An accepted one is dumped, reads back
// as the same config, and can be reported on. The file and the values are split by NUL bytes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "config/derive.h"
#include "config/dump.h"
#include "config/load.h"

using namespace encore;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> parts;
  while (parts.size() < 16) {
    const auto end = rest.find('\0');
    parts.emplace_back(rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  const std::string toml = parts.front();
  parts.erase(parts.begin());
  auto config = config::parse_config(toml, "fuzz", parts);
  if (!config) {
    ENCORE_CHECK(!config.error().message.empty(), "a refusal says why");
    return 0;
  }
  ENCORE_CHECK(!config::check_report(*config, 2).empty(), "a good config has a report");
  // The seed is not dumped.
  config->admission.seed = "";
  const auto back = config::parse_config(config::dump_config(*config), "dump");
  ENCORE_CHECK(back.has_value(), "what is dumped is accepted");
  ENCORE_CHECK(*back == *config, "what is dumped reads back the same");
  ENCORE_CHECK(config::reload_blockers(*config, *back).empty(), "and needs no restart");
  return 0;
}

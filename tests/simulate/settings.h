// The configuration of a simulated proxy, out of the seed: small limits, so that what happens at
// them happens often.
#pragma once

#include <string>

#include "config/config.h"
#include "tests/fuzz/proxy/rules.h"
#include "tests/simulate/adversity.h"

namespace encore::simulate {

enum class Direction : std::uint8_t { kForward, kReverse };

struct Settings {
  Direction direction = Direction::kForward;
  std::uint16_t port = 3128;
  bool names = false;  // origins are named in [[origin]]
  bool publishes = false;
  bool disk = false;                 // behind the memory
  bool strip_tags = false;           // for clients
  std::string_view log_format = {};  // empty: nothing is logged
  // TLS: the listener's setting, as a line, and the issuer of the origin's certificate, a file.
  // Empty: plain.
  std::string listen_tls{};
  std::string origin_authority{};
  bool origin_http2 = false;                    // the origin's servers know it
  const proxyfuzz::RuleTable* rules = nullptr;  // null: some that nothing depends on
};

// Port that tunnels may lead to.
constexpr std::uint16_t kTunnelPort = 8001;

// The whole text of the file.
std::string draw_configuration(const Settings& settings, Random& random);
// Redraws the limit for stored objects, and nothing else.
std::string redraw_object_max(const std::string& text, Random& random);
// Redraws the settings that a reload may change.
std::string redraw_configuration(const std::string& text, Random& random);
// Other rules, and nothing else. REQUIRES: it was drawn with some.
std::string with_rules(const std::string& text, const Settings& settings);
// REQUIRES: good text.
config::Config read_configuration(const std::string& text);

}  // namespace encore::simulate

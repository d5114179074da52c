#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "base/units.h"
#include "sim/workload/request_generator.h"

namespace encore::sim {
namespace {

struct NamedPattern {
  Pattern pattern;
  std::string_view name;
};
constexpr std::array kPatterns = {
#define ENCORE_NAMED(id, name, what) NamedPattern{Pattern::id, name},
    ENCORE_PATTERNS(ENCORE_NAMED)
#undef ENCORE_NAMED
};

// A petabyte, or 30 million years: beyond it nothing is a size or a TTL.
constexpr double kValueMax = 1e15;

// A number or a size with its unit.
bool read_value(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size()) {
    return value >= 0 && value <= kValueMax;
  }
  const auto bytes = parse_bytes(text);
  value = bytes ? static_cast<double>(*bytes) : 0;
  return bytes.has_value() && value <= kValueMax;
}

}  // namespace

Result<Pattern> parse_pattern(std::string_view name) {
  std::string accepted;
  for (const NamedPattern& entry : kPatterns) {
    if (entry.name == name) {
      return entry.pattern;
    }
    accepted += (accepted.empty() ? "" : ", ") + std::string(entry.name);
  }
  return fail("unknown pattern \"" + std::string(name) + "\", accepted: " + accepted);
}

Result<Distribution> parse_distribution(std::string_view text) {
  const auto refuse = [&] {
    return fail("cannot read \"" + std::string(text) +
                "\" as a distribution, accepted: 16KiB, lognormal:MEDIAN:SIGMA[:MAX], "
                "pareto:MIN:ALPHA[:MAX]");
  };
  Distribution distribution;
  if (read_value(text, distribution.location)) {
    return distribution;
  }
  std::vector<std::string_view> parts;
  std::string_view rest = text;
  while (true) {
    const std::size_t colon = rest.find(':');
    parts.push_back(rest.substr(0, colon));
    if (colon == std::string_view::npos) {
      break;
    }
    rest.remove_prefix(colon + 1);
  }
  if (parts.size() < 3 || parts.size() > 4 || (parts[0] != "lognormal" && parts[0] != "pareto")) {
    return refuse();
  }
  distribution.kind =
      parts[0] == "pareto" ? Distribution::Kind::kPareto : Distribution::Kind::kLognormal;
  const bool good = read_value(parts[1], distribution.location) &&
                    read_value(parts[2], distribution.shape) &&
                    (parts.size() == 3 || read_value(parts[3], distribution.maximum));
  if (!good || distribution.location <= 0 || distribution.shape <= 0) {
    return refuse();
  }
  return distribution;
}

}  // namespace encore::sim

// The text of Chart.js, embedded at build time from the distribution's package.
#pragma once

#include <string_view>

namespace encore::sim {

// Empty where the package was missing at build time.
std::string_view chart_js() noexcept;

}  // namespace encore::sim

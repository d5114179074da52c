// Writes diagnostics of the proxy, a line each, to standard error, by spdlog. Formatting and spdlog
// are behind it, so that callers need not compile either. A line whose level is off is not
// formatted. Thread-safe.
#pragma once

#include <fmt/core.h>

namespace encore::log {

enum class Severity : unsigned char { kDebug, kInfo, kWarn, kError };

void write(Severity severity, fmt::string_view format, fmt::format_args values);

template <typename... T>
void debug(fmt::format_string<T...> format, T&&... values) {
  write(Severity::kDebug, format, fmt::make_format_args(values...));
}
template <typename... T>
void info(fmt::format_string<T...> format, T&&... values) {
  write(Severity::kInfo, format, fmt::make_format_args(values...));
}
template <typename... T>
void warn(fmt::format_string<T...> format, T&&... values) {
  write(Severity::kWarn, format, fmt::make_format_args(values...));
}
template <typename... T>
void error(fmt::format_string<T...> format, T&&... values) {
  write(Severity::kError, format, fmt::make_format_args(values...));
}

}  // namespace encore::log

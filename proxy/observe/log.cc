#include "proxy/observe/log.h"

#include <spdlog/spdlog.h>

namespace encore::log {
namespace {

spdlog::level::level_enum level_of(Severity severity) {
  switch (severity) {
    case Severity::kDebug:
      return spdlog::level::debug;
    case Severity::kInfo:
      return spdlog::level::info;
    case Severity::kWarn:
      return spdlog::level::warn;
    case Severity::kError:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

void write(Severity severity, fmt::string_view format, fmt::format_args values) {
  const spdlog::level::level_enum level = level_of(severity);
  spdlog::logger& logger = *spdlog::default_logger_raw();
  if (!logger.should_log(level)) return;
  const std::string line = fmt::vformat(format, values);
  logger.log(level, spdlog::string_view_t(line));
}

}  // namespace encore::log

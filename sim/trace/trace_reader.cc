#include "sim/trace/trace_reader.h"

namespace encore::sim {
namespace {

struct NamedFormat {
  TraceFormat format;
  std::string_view name;
};
constexpr std::array kFormats = {
#define ENCORE_NAMED(id, name, what) NamedFormat{TraceFormat::id, name},
    ENCORE_TRACE_FORMATS(ENCORE_NAMED)
#undef ENCORE_NAMED
};

}  // namespace

std::string_view to_string(TraceFormat format) noexcept {
  for (const NamedFormat& entry : kFormats) {
    if (entry.format == format) {
      return entry.name;
    }
  }
  return "auto";
}

std::string_view to_string(Confidence confidence) noexcept {
  switch (confidence) {
    case Confidence::kGiven:
      return "given";
    case Confidence::kCertain:
      return "certain";
    case Confidence::kHigh:
      return "high";
    case Confidence::kLow:
      return "low";
  }
  return "low";
}

Result<TraceFormat> parse_trace_format(std::string_view name) {
  if (name == "auto") {
    return TraceFormat::kAuto;
  }
  std::string accepted = "auto";
  for (const NamedFormat& entry : kFormats) {
    if (entry.name == name) {
      return entry.format;
    }
    accepted += ", " + std::string(entry.name);
  }
  return fail("unknown trace format \"" + std::string(name) + "\", accepted: " + accepted);
}

}  // namespace encore::sim

#include "sim/cli/warmup.h"

#include <charconv>
#include <string>

namespace encore::sim {
namespace {

template <typename Number>
bool read(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Result<Warmup> parse_warmup(std::string_view text) {
  Warmup warmup;
  double percent = 0;
  std::uint64_t requests = 0;
  if (read(text, requests)) {
    warmup.requests = requests;
    return warmup;
  }
  if (text.ends_with('%') && read(text.substr(0, text.size() - 1), percent) && percent >= 0 &&
      percent < 100) {
    warmup.share = percent / 100;
    return warmup;
  }
  return fail("--warmup \"" + std::string(text) +
              "\", accepted: a whole number of requests, or a share of them below 100%");
}

Result<std::uint64_t> warmup_requests(const Warmup& warmup, std::uint64_t trace_requests) {
  const std::uint64_t requests =
      warmup.share > 0
          ? static_cast<std::uint64_t>(warmup.share * static_cast<double>(trace_requests))
          : warmup.requests;
  if (requests >= trace_requests) {
    return fail("--warmup " + std::to_string(requests) +
                " leaves nothing to count: the trace has " + std::to_string(trace_requests) +
                " requests, accepted: fewer than these");
  }
  return requests;
}

}  // namespace encore::sim

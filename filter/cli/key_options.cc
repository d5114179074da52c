#include "filter/cli/key_options.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <ostream>

namespace encore::filter {
namespace {

void warn_if_overfull(const AnyFilter& filter, const Context& context) {
  const AnyFilterInfo info = filter.info();
  // A filter that grows is never overfull, and one at its capacity is estimated a little above it
  // or below.
  if (info.fpr_now <= 1.1 * info.fpr_capacity) {
    return;
  }
  std::array<char, 200> text{};
  const auto capacity = static_cast<unsigned long long>(info.capacity);
  if (std::isfinite(info.keys_estimated)) {
    std::snprintf(text.data(), text.size(),
                  "the filter is sized for %llu keys and has about %.0f: its false-positive rate "
                  "is %.2g instead of %.2g\n",
                  capacity, info.keys_estimated, info.fpr_now, info.fpr_capacity);
  } else {
    std::snprintf(text.data(), text.size(),
                  "the filter is sized for %llu keys and is saturated, so that its number of keys "
                  "is unknown: its false-positive rate is %.2g instead of %.2g\n",
                  capacity, info.fpr_now, info.fpr_capacity);
  }
  context.err << "encore-filter: " << text.data();
}

}  // namespace

Result<void> add_keys(AnyFilter& filter, const KeyOptions& keys, const Context& context,
                      std::uint64_t memory_bytes_max) {
  KeyReader reader(keys.source(context.in), context.monitor);
  for (auto some = reader.next(); !some || !some->empty(); some = reader.next()) {
    if (!some) {
      return std::unexpected(some.error());
    }
    for (const std::string_view key : *some) {
      filter.add(key);
      // A slice that was just made has not been written to: its pages take no memory yet.
      if (filter.memory_bytes() > memory_bytes_max) [[unlikely]] {
        return fail("the filter has grown to " + std::to_string(filter.memory_bytes()) +
                    " bytes of memory, accepted: up to " + std::to_string(memory_bytes_max) +
                    " (--memory-max)");
      }
    }
  }
  warn_if_overfull(filter, context);
  return {};
}

}  // namespace encore::filter

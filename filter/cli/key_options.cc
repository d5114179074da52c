#include "filter/cli/key_options.h"

#include <array>
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
  std::snprintf(text.data(), text.size(),
                "the filter is made for %llu keys and has about %.0f: its false-positive rate is "
                "%.2g instead of %.2g\n",
                static_cast<unsigned long long>(info.capacity), info.keys_estimated, info.fpr_now,
                info.fpr_capacity);
  context.err << "encore-filter: " << text.data();
}

}  // namespace

Result<void> add_keys(AnyFilter& filter, const KeyOptions& keys, const Context& context) {
  if (auto done = for_each_key(keys, context, [&](std::string_view key) { filter.add(key); });
      !done) {
    return done;
  }
  warn_if_overfull(filter, context);
  return {};
}

}  // namespace encore::filter

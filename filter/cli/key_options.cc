#include "filter/cli/key_options.h"

#include <ostream>

namespace encore::filter {

void give_advice(const std::vector<std::string>& advice, const Context& context) {
  if (!context.out.flush()) {
    return;
  }
  for (const std::string& text : advice) {
    context.err << "encore-filter: " << text << "\n";
  }
}

Result<std::uint64_t> add_keys(AnyFilter& filter, const KeyOptions& keys, const Context& context,
                               std::uint64_t memory_bytes_max) {
  std::uint64_t read = 0;
  KeyReader reader(keys.source(context.in), context.monitor);
  for (auto some = reader.next(); !some || !some->empty(); some = reader.next()) {
    if (!some) {
      return std::unexpected(some.error());
    }
    read += some->size();
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
  return read;
}

}  // namespace encore::filter

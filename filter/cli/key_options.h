// KeyOptions: where a command's keys come from. Values; confined to one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/cli/arguments.h"
#include "base/error.h"
#include "filter/any_filter.h"
#include "filter/cli/command.h"
#include "filter/cli/key_reader.h"

namespace encore::filter {

class KeyOptions {
 public:
  void declare(Arguments& arguments) {
    arguments.optional_files("KEYS", paths_,
                             "files of keys, one per line; default and -: standard input");
    arguments.flag("-0,--null", null_, "keys end with a zero byte instead of a newline");
  }
  KeySource source(int in) const {
    return {.paths = paths_, .in = in, .end = null_ ? KeyEnd::kNull : KeyEnd::kLine};
  }
  bool from_standard_input() const {
    return paths_.empty() || std::ranges::find(paths_, "-") != paths_.end();
  }
  char end_of_key() const { return null_ ? '\0' : '\n'; }

 private:
  std::vector<std::string> paths_;
  bool null_ = false;
};

// Calls each(key) for all of them. Errors: as KeyReader::next.
Result<void> for_each_key(const KeyOptions& keys, const Context& context, auto each) {
  KeyReader reader(keys.source(context.in), context.monitor);
  for (auto some = reader.next(); !some || !some->empty(); some = reader.next()) {
    if (!some) {
      return std::unexpected(some.error());
    }
    for (const std::string_view key : *some) {
      each(key);
    }
  }
  return {};
}

// Prints advice on context.err, one piece a line; none after output that failed.
void give_advice(const std::vector<std::string>& advice, const Context& context);

// Adds every key. Returns the number of keys read. Errors: the filter grows above that memory.
Result<std::uint64_t> add_keys(AnyFilter& filter, const KeyOptions& keys, const Context& context,
                               std::uint64_t memory_bytes_max = UINT64_MAX);

}  // namespace encore::filter

// Tasks of a sweep: each reads one trace once and makes its runs, which differ in the cache size
// alone. A task is named by its content, so that it is the same on every machine and after a change
// of the sweep's file, and a result that is there needs no second run. Values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sim/sweep/sweep_file.h"

namespace encore::sim {

// Options in the order of the sweep's file, each with one text.
using TaskOptions = std::vector<std::pair<std::string, std::string>>;

struct Task {
  std::string name;  // "web07-lru-always-0c31f2a97b44d6e1": for a file name
  SweptTrace trace;
  TaskOptions options;
  std::vector<std::string> sizes;  // values of --cache-size, a run each; empty: the default
  // The command line of `replay` without the trace; it may be parsed, and says more in JSON.
  std::vector<std::string> words;
};

// All tasks of a sweep, whose counts come in so many parts (0: none), without those that would be
// equal because an option has no effect on them, and without hints of parents where there are none.
// Errors: a trace that is not there.
Result<std::vector<Task>> plan_tasks(const Sweep& sweep, std::uint64_t parts);

// Returns the place in the sweep's file of the option that `replay` complains about, and of its
// value where the file has a list; the empty text where the message names no option of the task.
std::string place_of_fault(const Sweep& sweep, const Task& task, std::string_view message);

}  // namespace encore::sim

// Command: one sub-command of encore-sim. The frame (program.h) reads the command line, runs the
// command and writes its report.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/arguments.h"
#include "base/cli/monitor.h"
#include "base/error.h"
#include "sim/replay/replay_options.h"
#include "sim/report/report.h"
#include "sim/trace/trace_reader.h"

namespace encore::sim {

// Parts of a command that its caller has as objects, not as words: the Python module.
struct Given {
  // Opens the trace instead of the files that are named; empty: those.
  std::function<Result<std::unique_ptr<TraceReader>>(const TraceOptions&)> open = {};
  // An eviction policy instead of those that are named; empty: those.
  OwnCache own = {};
};

// Environment of a command, in addition to its own options.
struct Context {
  Monitor& monitor;
  const Arguments& arguments;
  std::ostream& out;             // for what is printed while the work goes on
  bool json_to_out = false;      // the report goes there as JSON: write nothing else
  const Given* given = nullptr;  // null: nothing
  // Opens the given trace, or the files. Errors: as open_traces().
  Result<std::unique_ptr<TraceReader>> open(const std::vector<std::string>& files,
                                            const TraceOptions& options) const;
};

enum class Verdict : std::uint8_t { kGood, kCheckFailed };

struct Outcome {
  Report report;
  Verdict verdict = Verdict::kGood;
  bool out_is_taken = false;  // by a trace: the report's text goes to standard error
};

class Command {
 public:
  virtual ~Command() = default;
  virtual std::string name() const = 0;     // "blocks", or "theory fill"
  virtual std::string summary() const = 0;  // one line
  virtual std::string example() const = 0;  // a command line that works
  virtual void declare(Arguments& arguments) = 0;
  // Errors: wrong use, as far as it is known before a file is read.
  virtual Result<void> check_use(const Arguments& /*arguments*/) { return {}; }
  // Errors: wrong use or input (exit 2).
  virtual Result<Outcome> run(const Context& context) = 0;
};

}  // namespace encore::sim

// Command: one sub-command of encore-sim, and Arguments, how it says what options it takes. The
// frame (program.h) reads the command line, runs the command and writes its report.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sim/cli/numbers.h"
#include "sim/report/report.h"
#include "sim/workload/monitor.h"

namespace CLI {
class App;
}

namespace encore::sim {

// Declares options into variables that must live until the command has run. Every declaration's
// help text ends in the default where there is one. A number outside its range, or that is none,
// ends the program before the command runs.
class Arguments {
 public:
  explicit Arguments(CLI::App& app) : app_(app) {}
  void number(const std::string& name, std::uint64_t& value, const std::string& help,
              const NumberRange& range = {});
  void real(const std::string& name, double& value, const std::string& help,
            const RealRange& range = {});
  void text(const std::string& name, std::string& value, const std::string& help);
  void flag(const std::string& name, bool& value, const std::string& help);
  // --name alone, or --name=VALUE: `alone` is the value then.
  void optional_text(const std::string& name, std::string& value, const std::string& alone,
                     const std::string& help);
  // Positional arguments, one or more.
  void files(const std::string& name, std::vector<std::string>& value, const std::string& help);
  void file(const std::string& name, std::string& value, const std::string& help);
  // A file that will be written, "-" for standard output.
  void output(const std::string& name, std::string& value, const std::string& help);
  void optional_output(const std::string& name, std::string& value, const std::string& help);
  // Once all is parsed: no file that is read is written, and none is written twice.
  Result<void> check_outputs() const;
  // Whether the option was given on the command line.
  bool given(const std::string& name) const;

 private:
  struct Output {
    std::string name;
    const std::string* path = nullptr;
  };
  CLI::App& app_;
  std::vector<const std::string*> input_;
  const std::vector<std::string>* inputs_ = nullptr;
  std::vector<Output> outputs_;
};

// What a command is given beside its own options.
struct Context {
  Monitor& monitor;
  const Arguments& arguments;
  std::ostream& out;         // for what is printed while the work goes on
  bool json_to_out = false;  // the report goes there as JSON: write nothing else
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
  // Errors: wrong use or input (exit 2).
  virtual Result<Outcome> run(const Context& context) = 0;
};

}  // namespace encore::sim

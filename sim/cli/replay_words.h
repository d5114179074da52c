// ReplayWords: one replay by the words of its command line, for commands that make many. Confined
// to one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/cli/arguments.h"
#include "base/cli/monitor.h"
#include "base/error.h"
#include "sim/cli/command.h"

namespace CLI {
class App;
}

namespace encore::sim {

class ReplayWords {
 public:
  // Errors: wrong use, as the command itself would print it. No file is read.
  static Result<ReplayWords> parse(std::vector<std::string> words);
  ReplayWords(ReplayWords&& other) noexcept;
  ReplayWords& operator=(ReplayWords&&) = delete;
  ReplayWords(const ReplayWords&) = delete;
  ReplayWords& operator=(const ReplayWords&) = delete;
  ~ReplayWords();

  Result<Outcome> run(Monitor& monitor);

 private:
  ReplayWords();

  std::unique_ptr<Command> command_;
  std::unique_ptr<CLI::App> app_;
  std::unique_ptr<Arguments> arguments_;
};

}  // namespace encore::sim

// OperatorCommands: the commands of command.h below the program's own options. Confined to one
// thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/load.h"
#include "proxy/cli/command.h"
#include "proxy/cli/session.h"

namespace CLI {
class App;
}

namespace encore::cli {

class OperatorCommands {
 public:
  // Adds them to `root`, which must outlive this.
  explicit OperatorCommands(CLI::App& root);
  ~OperatorCommands();
  OperatorCommands(const OperatorCommands&) = delete;
  OperatorCommands& operator=(const OperatorCommands&) = delete;

  // True if the command line that `root` has parsed has one of them.
  bool is_given() const;
  // Runs it. REQUIRES: is_given().
  Exit run(const config::Sources& sources, const Streams& streams) const;

 private:
  struct Added;
  const Added* given() const;
  Exit run_shown(const Added& added, const Streams& streams) const;

  CLI::App& root_;
  std::vector<std::unique_ptr<Added>> added_;
};

}  // namespace encore::cli

// Runs a command line of encore-sim inside the test, and looks into its report.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "sim/cli/program.h"

namespace encore::sim {

struct Ran {
  int exit_code = 0;
  std::string out;
  std::string err;
};

inline Ran run(const std::string& command_line) {
  std::istringstream words(command_line);
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) {
    arguments.push_back(word);
  }
  std::ostringstream out;
  std::ostringstream err;
  Monitor monitor;
  Ran ran;
  ran.exit_code = run_program(arguments, {out, err}, monitor);
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

}  // namespace encore::sim

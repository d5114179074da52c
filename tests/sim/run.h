// Runs a command line of encore-sim inside the test, and looks into its report.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "sim/cli/program.h"
#include "tests/catch.h"

namespace encore::sim {

struct Ran {
  int exit_code = 0;
  std::string out;
  std::string err;
};

inline Ran run(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  Monitor monitor;
  Ran ran;
  ran.exit_code = run_program(arguments, {out, err}, monitor);
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

inline Ran run(const std::string& command_line) {
  std::istringstream words(command_line);
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) {
    arguments.push_back(word);
  }
  return run(arguments);
}

// Checks that it ended with exit 2 and one line on standard error, which says this.
inline void check_refused(const Ran& ran, const std::string& because) {
  CAPTURE(ran.err);
  CHECK(ran.exit_code == 2);
  CHECK(ran.err.find(because) != std::string::npos);
  CHECK(std::ranges::count(ran.err, '\n') == 1);
}

}  // namespace encore::sim

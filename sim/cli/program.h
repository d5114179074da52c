// The frame of encore-sim: reads the command line, runs one command, writes its report.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "sim/cli/command.h"

namespace encore::sim {

// Every command there is, in the order of the help.
std::vector<std::unique_ptr<Command>> all_commands();

struct Streams {
  std::ostream& out;
  std::ostream& err;
};

// Runs one command line (without the program's name). Answers the exit code: 0 fine, 1 a check
// failed or the run was interrupted, 2 wrong use or input (one line on `err` says what; behind it,
// the commands if none was given). `monitor` is where an interrupt sets `stop`.
int run_program(std::vector<std::string> arguments, const Streams& streams, Monitor& monitor);

}  // namespace encore::sim

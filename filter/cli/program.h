// The frame of encore-filter: reads the command line, runs one command.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace encore::filter {

struct Streams {
  int in;
  std::ostream& out;
  std::ostream& err;
};

// Runs one command line (without the program's name). Returns the exit code, as grep does: 0
// something was found or done, 1 nothing was found, 2 wrong use or input, or a failed write of the
// output. With 2, one line on `err` states the reason; if no command was given, the commands
// follow.
int run_program(std::vector<std::string> arguments, const Streams& streams);

}  // namespace encore::filter

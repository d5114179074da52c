// The frame of encore-sim: reads the command line, runs one command, writes its report.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "sim/cli/command.h"
#include "sim/cli/interrupt.h"

namespace encore::sim {

// Every command there is, in the order of the help.
std::vector<std::unique_ptr<Command>> all_commands();

struct Streams {
  std::ostream& out;
  std::ostream& err;
};

// Runs one command line (without the program's name). Returns the exit code: 0 fine, 1 a check
// failed, 2 wrong use or input (one line on `err` states the reason; then the commands if none was
// given), 130 (kExitInterrupted) an interrupt cut it short. `monitor` is where that sets `stop`;
// `interrupt`, if there is one, receives the texts for the case that the work does not notice.
int run_program(const std::vector<std::string>& arguments, const Streams& streams, Monitor& monitor,
                Interrupt* interrupt = nullptr);

// Runs one command line as a function: nothing is printed, and files are written as it says.
// `given` takes the place of what the words name. An interrupt (the monitor's `stop`) gives a
// report that says so. Errors: those of exit code 2; for --help and --version their text.
Result<Report> call_command(const std::vector<std::string>& arguments, const Given& given,
                            Monitor& monitor);

}  // namespace encore::sim

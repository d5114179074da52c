// `encore ca`: makes the authority that clients are to trust, shows it, makes it again.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/time.h"

namespace CLI {
class App;
}

namespace encore::ca {

struct CaEnvironment {
  std::ostream& out;
  std::ostream& err;
  std::string machine;  // its name
  WallTime now;
};

// Runs one command line, which begins behind the word "ca". Returns the exit code: 0 done, 2 wrong
// use, or it could not be done; then one line on `err` says why, and nothing was changed.
int run_program(std::vector<std::string> words, const CaEnvironment& around);

// All that a process does whose command line, without the program's name, begins with "ca".
int ca_main(std::vector<std::string> words);

// Calls `look` with the parser of these command lines, for documentation and completions.
void with_parser(const std::function<void(const CLI::App&)>& look);

}  // namespace encore::ca

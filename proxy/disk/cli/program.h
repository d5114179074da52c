// `encore disk`: inspects disks for operators. Nothing is ever written to one.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "proxy/disk/format.h"

namespace CLI {
class App;
}

namespace encore::disk {

struct Streams {
  std::ostream& out;
  std::ostream& err;
};

// Runs one command line, which begins behind the word "disk", at this time. Returns the exit code:
// 0 done, 1 `verify` has found damage, 2 wrong use, a disk that cannot be read, or what was printed
// did not get out; then one line on `err` says what.
int run_program(std::vector<std::string> words, const Streams& streams, WallSeconds now);

// All that a process does whose command line, without the program's name, begins with "disk".
int disk_main(std::vector<std::string> words);

// Calls `look` with the parser of these command lines, for documentation and completions.
void with_parser(const std::function<void(const CLI::App&)>& look);

}  // namespace encore::disk

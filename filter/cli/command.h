// Command: one sub-command of encore-filter. The frame (program.h) reads the command line and turns
// what run() returns into an exit code.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "base/cli/arguments.h"
#include "base/cli/monitor.h"
#include "base/error.h"

namespace encore::filter {

// Environment of a command, in addition to its own options.
struct Context {
  Monitor& monitor;
  const Arguments& arguments;
  int in;             // standard input
  std::ostream& out;  // the caller of the command checks it for errors
  std::ostream& err;  // for what is worth a word and no error
};

// As grep says it: something was found, or nothing.
enum class SearchOutcome : std::uint8_t { kSomething, kNothing };

class Command {
 public:
  virtual ~Command() = default;
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;   // one line
  virtual std::string examples() const = 0;  // command lines that work, one a line
  virtual void declare(Arguments& arguments) = 0;
  // Errors: wrong use or input (exit 2).
  virtual Result<SearchOutcome> run(const Context& context) = 0;
};

// Every command there is, in the order of the help.
std::vector<std::unique_ptr<Command>> all_commands();

std::unique_ptr<Command> make_build_command();
std::unique_ptr<Command> make_add_command();
std::unique_ptr<Command> make_remove_command();
std::unique_ptr<Command> make_test_command();
std::unique_ptr<Command> make_info_command();
// union, intersect.
std::vector<std::unique_ptr<Command>> make_combine_commands();
std::unique_ptr<Command> make_convert_command();
std::unique_ptr<Command> make_fetch_command();
std::unique_ptr<Command> make_sizing_command();
std::unique_ptr<Command> make_join_command();
std::unique_ptr<Command> make_hashes_command();

}  // namespace encore::filter

// The frame of a program of commands: what it does around whichever one is run. Confined to one
// thread.
#pragma once

#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace encore {

// Wrong use or input, or no way to say what was found.
inline constexpr int kExitTrouble = 2;

// The name and the output streams of a program.
struct ProgramOutput {
  std::string program;
  std::ostream& out;
  std::ostream& err;
};

// At the start of main(): without memory the process ends with kExitTrouble and a line that says
// so; and a reader that closes the pipe is a write error, which is said, like a full disk.
// `program` is borrowed for good.
void begin_process(const char* program);

// The exit code, or kExitTrouble if something of what was printed did not get out: nobody must take
// a part for the whole. REQUIRES: errno was 0 before it was printed.
int check_written(const ProgramOutput& output, int exit_code);

// Reads a command line, without the program's name; `commands` are those that can be run. Nothing:
// one of them was parsed. Else all is said, and this is the exit code.
std::optional<int> parse_command_line(CLI::App& root, std::span<const CLI::App* const> commands,
                                      std::vector<std::string> words, const ProgramOutput& output);

}  // namespace encore

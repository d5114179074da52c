#include "base/cli/program.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <ostream>
#include <string_view>
#include <utility>

#include "base/cli/arguments.h"
#include "base/cli/usage_error.h"

namespace encore {
namespace {

const char* running = "";

void say(std::string_view words) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, words.data(), words.size());
}

// There may be no memory to say so with, nor can a thread of the work say it to another.
void on_out_of_memory() {
  say(running);
  say(": out of memory\n");
  _exit(kExitTrouble);
}

}  // namespace

void begin_process(const char* program) {
  running = program;
  std::set_new_handler(on_out_of_memory);
  std::signal(SIGPIPE, SIG_IGN);
}

int check_written(const ProgramOutput& output, int exit_code) {
  output.out.flush();
  if (output.out) {
    return exit_code;
  }
  output.err << output.program << ": cannot write to standard output"
             << (errno == 0 ? "" : std::string(": ") + std::strerror(errno)) << "\n";
  return kExitTrouble;
}

std::optional<int> parse_command_line(CLI::App& root, std::span<const CLI::App* const> commands,
                                      std::vector<std::string> words, const ProgramOutput& output) {
  split_empty_values(commands, words);
  try {
    std::ranges::reverse(words);
    root.parse(std::move(words));
  } catch (const CLI::Success& asked) {
    errno = 0;
    root.exit(asked, output.out, output.err);
    return check_written(output, 0);
  } catch (const CLI::ParseError& error) {
    output.err << output.program << ": " << usage_error(root, error) << "\n";
    return kExitTrouble;
  }
  return std::nullopt;
}

}  // namespace encore

#include <unistd.h>

#include <csignal>
#include <iostream>
#include <new>
#include <string_view>

#include "sim/cli/interrupt.h"
#include "sim/cli/program.h"

namespace {

// What is not known beforehand: a trace of more objects than fit. There may be no memory to say so
// with, nor can a thread of the work say it to another.
void on_out_of_memory() {
  constexpr std::string_view kWords = "encore-sim: out of memory\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWords.data(), kWords.size());
  _exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  std::set_new_handler(on_out_of_memory);
  // A reader that closes the pipe is a write error, which is said, like a full disk.
  std::signal(SIGPIPE, SIG_IGN);
  encore::sim::Monitor monitor;
  encore::sim::Interrupt interrupt(monitor);
  return encore::sim::run_program({argv + 1, argv + argc}, {std::cout, std::cerr}, monitor,
                                  &interrupt);
}

#include <csignal>
#include <iostream>

#include "sim/cli/program.h"

namespace {

encore::sim::Monitor monitor;

// The first interrupt asks the work to end with what it knows; the second one kills.
void on_interrupt(int signal) {
  monitor.stop = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, on_interrupt);
  // A reader that closes the pipe is a write error, which is said, like a full disk.
  std::signal(SIGPIPE, SIG_IGN);
  return encore::sim::run_program({argv + 1, argv + argc}, {std::cout, std::cerr}, monitor);
}

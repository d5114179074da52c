#include <iostream>

#include "base/cli/program.h"
#include "sim/cli/interrupt.h"
#include "sim/cli/program.h"

int main(int argc, char** argv) {
  encore::begin_process("encore-sim");
  encore::Monitor monitor;
  encore::sim::Interrupt interrupt(monitor);
  return encore::sim::run_program({argv + 1, argv + argc}, {std::cout, std::cerr}, monitor,
                                  &interrupt);
}

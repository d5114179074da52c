#include <unistd.h>

#include <iostream>

#include "base/cli/program.h"
#include "filter/cli/program.h"

int main(int argc, char** argv) {
  encore::begin_process("encore-filter");
  std::ios::sync_with_stdio(false);
  return encore::filter::run_program({argv + 1, argv + argc}, {STDIN_FILENO, std::cout, std::cerr});
}

// Prints docs/CONFIG.md, which `./dev docs` writes; with --manual DATE the page encore.toml(5).
#include <cstdio>
#include <string>
#include <string_view>

#include "config/dump.h"

int main(int argc, char** argv) {
  if (argc != 1 && (argc != 3 || std::string_view(argv[1]) != "--manual")) {
    std::fputs("usage: encore_config_document [--manual DATE]\n", stderr);
    return 2;
  }
  const std::string text =
      argc == 1 ? encore::config::document_config() : encore::config::config_manual(argv[2]);
  return std::fputs(text.c_str(), stdout) < 0 ? 1 : 0;
}

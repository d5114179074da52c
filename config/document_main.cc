// Prints docs/CONFIG.md; `./dev docs` writes it.
#include <cstdio>

#include "config/dump.h"

int main() {
  const std::string text = encore::config::document_config();
  return std::fputs(text.c_str(), stdout) < 0 ? 1 : 0;
}

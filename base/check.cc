#include "base/check.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace encore {
namespace {

thread_local PanicContext* innermost_context = nullptr;

void write_all(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

PanicContext::PanicContext(std::string_view text) noexcept
    : text_(text), outer_(innermost_context) {
  innermost_context = this;
}

PanicContext::~PanicContext() { innermost_context = outer_; }

void panic(const char* file, int line, const char* condition, std::string_view message) noexcept {
  std::array<char, 32> number{};
  std::snprintf(number.data(), number.size(), ":%d: ", line);
  write_all("\npanic: ");
  write_all(file);
  write_all(number.data());
  write_all(message);
  write_all("\n  failed: ");
  write_all(condition);
  for (const PanicContext* context = innermost_context; context != nullptr;
       context = context->outer_) {
    write_all("\n  while: ");
    write_all(context->text_);
  }
  write_all("\n");
  std::abort();
}

}  // namespace encore

// ENCORE_CHECK: a programmer's error stops the program with a report, in release builds too.
// A check never sees a peer's bytes: malformed input is an Error or an outcome, and tested.
//
// The report names the place, the condition, and what the thread was doing: a thread that works
// on a transaction announces it with PanicContext, which costs two stores to a thread-local.
#pragma once

#include <string_view>

namespace encore {

// Prints the panic report to standard error and aborts. Never returns, never allocates.
[[noreturn]] void panic(const char* file, int line, const char* condition,
                        std::string_view message) noexcept;

// Says, for as long as it lives, what this thread works on. `text` is borrowed and must outlive
// the object; it must hold no secret. Contexts nest: the innermost is printed first.
class PanicContext {
 public:
  explicit PanicContext(std::string_view text) noexcept;
  ~PanicContext();
  PanicContext(const PanicContext&) = delete;
  PanicContext& operator=(const PanicContext&) = delete;

 private:
  friend void panic(const char*, int, const char*, std::string_view) noexcept;
  std::string_view text_;
  PanicContext* outer_;
};

}  // namespace encore

// Aborts with a report unless `condition` holds. The message is a string literal that says what
// the reader of the report should know.
#define ENCORE_CHECK(condition, message)                          \
  do {                                                            \
    if (!(condition)) [[unlikely]] {                              \
      ::encore::panic(__FILE__, __LINE__, #condition, (message)); \
    }                                                             \
  } while (false)

// ENCORE_CHECK: a programmer's error stops the program with a report, in release builds too.
// A check never sees a peer's bytes: malformed input is an Error or an outcome, and tested.
//
// The report names the place, the condition, and what the thread was doing: a thread that works on
// a request says so with a PanicNote, a few stores for each request and no formatting before the
// panic.
#pragma once

#include <cstdint>
#include <string_view>

namespace encore {

// Prints the panic report to standard error and aborts. Never returns, never allocates.
[[noreturn]] void panic(const char* file, int line, const char* condition,
                        std::string_view message) noexcept;

// The activity of a thread. The texts are borrowed; empty ones are not shown. Neither are the parts
// after a '?' and before an '@' (a query and credentials are secrets), nor text after a control
// character (the fields of a head).
struct ThreadActivity {
  std::string_view who = {};      // "an exchange", "a fetch"
  std::string_view step = {};     // "lookup", "reading the origin's head"
  std::string_view request = {};  // as it came: method, a space and the target
  std::string_view key = {};      // its key in the cache
  std::uint16_t client_port = 0;
};

// Has the panic reports of this thread say, for as long as it lives, what the thread is doing then.
// Notes nest: the innermost is printed first. REQUIRES: `activity` outlives it, as do the texts
// that `activity` names at any time; made and destroyed on one thread, innermost first.
class PanicNote {
 public:
  explicit PanicNote(const ThreadActivity& activity) noexcept;
  ~PanicNote();
  PanicNote(const PanicNote&) = delete;
  PanicNote& operator=(const PanicNote&) = delete;

 private:
  friend void panic(const char*, int, const char*, std::string_view) noexcept;
  const ThreadActivity& activity_;
  const PanicNote* outer_;
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

// Error and Result: how an operating error travels (a missing file, a refused connection, a bad
// value in a config). An expected outcome is an enum of the module that has it; a programmer's
// error is ENCORE_CHECK (base/check.h). Thread-compatible.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace encore {

// An operating error. `message` is one line that shows the offending input and, where it helps,
// what would have been accepted. It never holds a secret (keys, seeds, credentials).
struct Error {
  std::string message;
};

// The value or the error. Functions that return nothing else use Result<void>.
template <typename T>
using Result = std::expected<T, Error>;

// Makes the error side of a Result: `return fail("cannot open " + path);`
[[nodiscard]] inline std::unexpected<Error> fail(std::string message) {
  return std::unexpected(Error{std::move(message)});
}

}  // namespace encore

// Files as texts. Thread-safe.
#pragma once

#include <string>

#include "base/error.h"

namespace encore::sim {

// The bytes of a regular file. Errors: it cannot be read, or is a directory; the message has the
// path.
Result<std::string> read_file(const std::string& path);

}  // namespace encore::sim

// Files that hold a secret: read only where others than their owner and its group cannot read or
// write them. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"

namespace encore {

// Whose the file must be: another user may put another secret in its place.
enum class SecretOwner : std::uint8_t { kThisUserOrRoot, kAnybody };

// All of the file, at most `bytes_max`. Errors are without the path and show nothing of what is in
// it: not to be read, not a file of that owner, of another mode than 0600, 0640 and stricter ones,
// too large.
Result<std::string> read_secret_file(const std::string& path, std::size_t bytes_max,
                                     SecretOwner owner = SecretOwner::kThisUserOrRoot);

}  // namespace encore

// Words for a POSIX shell. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace encore::sim {

// The word as a shell reads it back: in single quotes where it has anything but letters, digits
// and the signs that mean nothing to a shell.
std::string shell_word(std::string_view word);

}  // namespace encore::sim

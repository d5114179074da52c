// Directories that a start makes. Main thread.
#pragma once

#include <string>

#include "base/error.h"

namespace encore::server {

// Makes the directory, and those above it that are missing, each for this user alone. Errors: the
// directory, the reason, and a command that makes it.
Result<void> make_directory(const std::string& path);
// Checks if make_directory() would succeed: makes the directories, and removes what it has made.
// Errors: as above.
Result<void> check_makeable(const std::string& path);
// The nearest directory at or above this one that exists.
std::string existing_directory(const std::string& path);

}  // namespace encore::server

// Tells whether a file could be made, without making it. Thread-safe.
#pragma once

#include <string>

namespace encore {

// Returns 0 if this process may make a file at `path`, where there is none; else errno's value, as
// EEXIST or EACCES. The permissions of a directory do not show that, so a file is made, but never
// under that name: another process that makes one there meanwhile keeps it. Nothing is left behind.
int check_new_file(const std::string& path);

// Returns why no file could be made at `path`, by errno's value, and what to do where its directory
// is missing.
std::string why_no_new_file(const std::string& path, int os_error);

}  // namespace encore

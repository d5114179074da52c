// A program's output file: it is there as a whole or not at all. One at a time in a process.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace encore {

// Makes `bytes` the content of the file: written next to it, synced and renamed, so that a reader,
// a full disk or an interrupt (SIGINT, SIGTERM, SIGHUP) meets the old file or the new one. A link
// stays a link to the file, and the file keeps its permissions. A path that is not a regular file
// (/dev/stdout, a pipe) is written into directly. Errors show the path.
Result<void> replace_file(const std::string& path, std::string_view bytes);

}  // namespace encore

// Files for their owner alone, in a directory that others may write to as well: nothing there is
// followed, written into or believed that another user made. Functions of any one thread; errors
// show the path.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "proxy/net/socket.h"

namespace encore::server {

// Writes next to its place, syncs and renames, so that a crash leaves the old or the new one, never
// a part.
Result<void> write_private_file(const std::string& path, std::string_view bytes);
// Appends to a file, which is made if there is none; durable when it returns. After an error the
// file is as long as before, so that what is appended next is not behind a part.
Result<void> append_private_file(const std::string& path, std::string_view bytes);
// Nothing where there is none.
Result<std::optional<std::string>> read_private_file(const std::string& path);

// Files that another user has laid there are not ours to believe; those that others could read are
// closed to them (a copy may have got another mode).
Result<void> claim_file(const net::Socket& file, const std::string& path, struct stat& status);

}  // namespace encore::server

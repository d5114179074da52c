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

// Beside its place, synced and renamed, so that a crash leaves the old or the new one, never a
// part.
Result<void> write_private_file(const std::string& path, std::string_view bytes);
// Nothing where there is none.
Result<std::optional<std::string>> read_private_file(const std::string& path);

// What another user has laid there is not ours to believe; what others could read is closed to
// them (a copy may have got another mode).
Result<void> claim_file(const net::Socket& file, const std::string& path, struct stat& status);

}  // namespace encore::server

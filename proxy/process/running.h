// Which process is an encore that runs already, as far as /proc tells this user. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace encore::server {

// Another process of a program of our name that listens on this TCP port, on any address.
std::optional<pid_t> running_encore_on(std::uint16_t port);

// True if this is another process of a program of our name.
bool is_encore(pid_t process);

}  // namespace encore::server

// Globs, as hosts and paths are named by them. Pure, thread-safe.
#pragma once

#include <string_view>

namespace encore::server {

// True if the pattern describes the whole text. `*` is any run of characters, an empty one and one
// with "/" or "." in it included; every other character is itself. Takes time in proportion to both
// lengths, whatever they are made of, and no memory.
bool glob_matches(std::string_view pattern, std::string_view text) noexcept;

// True if a pattern of hosts describes one (both in lower case): a name, "*.example.com" for every
// name below it, or "*".
bool host_matches(std::string_view pattern, std::string_view host) noexcept;

}  // namespace encore::server

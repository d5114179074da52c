// Bodies that say of every byte whose it is. A content is one representation of one URL: its bytes
// follow from its number and its user, 64 at a time:
//   "C" number (10 hex) "@" block (6 hex) ".u" user (2 digits, "--": nobody's) "|" 41 letters LF
// Pure; thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace encore::proxyfuzz {

struct ContentName {
  std::uint64_t number = 0;
  int user = -1;  // owner of personal bytes; -1: nobody
};

// Appends bytes [begin, end) of it.
void append_content(const ContentName& name, std::uint64_t begin, std::uint64_t end,
                    std::string& out);

// Returns the offset at which `bytes` stop being those of the content at `offset`; npos if they
// never do.
std::size_t find_difference(const ContentName& name, std::uint64_t offset, std::string_view bytes);

}  // namespace encore::proxyfuzz

// FileMark: the identity of a file's content, without reading it: another file, or another content,
// has another mark. A value.
#pragma once

#include <cstdint>
#include <string>

namespace encore::net {

struct FileMark {
  // Follows links, as a reader of the file does.
  static FileMark of(const std::string& path);

  // False: there is no file of that name. True if it cannot be known.
  bool exists = true;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t bytes = 0;
  std::uint32_t mode = 0;
  // Nanoseconds since 1970. The second one also changes with the owner.
  std::int64_t written = 0;
  std::int64_t changed = 0;
  friend bool operator==(const FileMark&, const FileMark&) = default;
};

}  // namespace encore::net

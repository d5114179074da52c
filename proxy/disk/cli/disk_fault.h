// What a check has found wrong with a disk. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace encore::disk {

struct DiskFault {
  std::string what;  // "disk", "superblock", "purge log", "header", "footer", "record"
  // Where it begins: in the segment, or on the disk where there is none.
  std::optional<std::uint32_t> segment = {};
  std::uint64_t offset = 0;
  std::string url = {};  // of a record; empty: not known
  std::string why = {};
};

}  // namespace encore::disk

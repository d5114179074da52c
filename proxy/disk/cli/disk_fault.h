// A fault of a disk that a check has found. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace encore::disk {

struct DiskFault {
  std::string what;  // "disk", "superblock", "purge log", "header", "footer", "record"
  // Its begin: in the segment, or on the disk if there is none.
  std::optional<std::uint32_t> segment = {};
  std::uint64_t offset = 0;
  std::string url = {};  // URL of a record; empty: not known
  std::string why = {};
};

}  // namespace encore::disk

// Report of one disk in service. Values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace encore::disk {

enum class DiskCondition : std::uint8_t { kLoading, kInService, kWritesPaused, kOffline };
std::string_view to_string(DiskCondition condition);

struct DiskReport {
  std::string path;
  std::string emptied_for;  // why the start made it anew; empty: it did not
  DiskCondition condition = DiskCondition::kLoading;
  // Given to the device since the start, by what for; format: headers, footers, purges, and what is
  // written again with what follows.
  std::uint64_t admit_bytes = 0;
  std::uint64_t move_bytes = 0;
  std::uint64_t format_bytes = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t reads = 0;
  std::uint64_t read_errors = 0;
  std::uint64_t write_errors = 0;
  std::uint64_t write_pauses = 0;
  std::uint64_t failed_records = 0;  // that were placed, or to be moved, and are not written
  std::uint64_t damaged_records = 0;
  std::uint64_t waiting_bytes = 0;  // to be written
  std::uint32_t segments = 0;       // that had something at the start
  std::uint32_t segments_loaded = 0;
  std::uint64_t purge_log_entries = 0;
  std::uint64_t purge_log_overflows = 0;  // times that one purge took the place of all
};

}  // namespace encore::disk

// Writes the metrics of the disks. Pure, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "cache/statistics.h"
#include "proxy/disk/disk_report.h"
#include "proxy/observe/metrics_writer.h"

namespace encore::server {

// Nothing where there are none. Disks are named by their numbers in the config.
void write_disks(MetricsWriter& out, const cache::DiskStatistics& disk,
                 std::span<const disk::DiskReport> devices);

// A figure of a device that both pages show, by its name in JSON.
struct DeviceFigure {
  std::uint64_t disk::DiskReport::* member;
  std::string_view name;
  bool is_counter;
  std::string_view help;
};
inline constexpr std::array kDeviceFigures = {
    DeviceFigure{&disk::DiskReport::reads, "reads", true, "Reads from a disk."},
    DeviceFigure{&disk::DiskReport::read_bytes, "read_bytes", true, "Bytes read from a disk."},
    DeviceFigure{&disk::DiskReport::read_errors, "read_errors", true, "Failed reads."},
    DeviceFigure{&disk::DiskReport::write_errors, "write_errors", true, "Failed writes and syncs."},
    DeviceFigure{&disk::DiskReport::write_pauses, "write_pauses", true,
                 "Pauses of writing after failures."},
    DeviceFigure{&disk::DiskReport::failed_records, "failed_records", true,
                 "Responses placed or re-inserted, but not written."},
    DeviceFigure{&disk::DiskReport::damaged_records, "damaged_records", true,
                 "Damaged responses found while reading."},
    DeviceFigure{&disk::DiskReport::waiting_bytes, "waiting_bytes", false,
                 "Bytes queued for writing."},
    DeviceFigure{&disk::DiskReport::purge_log_entries, "purge_log_entries", false,
                 "Purges in a disk's purge log."},
    DeviceFigure{&disk::DiskReport::purge_log_overflows, "purge_log_overflows", true,
                 "Full purge logs replaced by one purge of all older objects."},
};

}  // namespace encore::server

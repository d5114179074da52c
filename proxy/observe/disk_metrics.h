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
    DeviceFigure{&disk::DiskReport::read_bytes, "read_bytes", true, "Their bytes."},
    DeviceFigure{&disk::DiskReport::read_errors, "read_errors", true, "Reads that failed."},
    DeviceFigure{&disk::DiskReport::write_errors, "write_errors", true,
                 "Writes and syncs that failed."},
    DeviceFigure{&disk::DiskReport::write_pauses, "write_pauses", true,
                 "Times that writes were paused because they failed."},
    DeviceFigure{&disk::DiskReport::failed_records, "failed_records", true,
                 "Responses that were placed or to be moved on, and are not written."},
    DeviceFigure{&disk::DiskReport::damaged_records, "damaged_records", true,
                 "Responses that were not sound when they were read."},
    DeviceFigure{&disk::DiskReport::waiting_bytes, "waiting_bytes", false,
                 "Bytes that wait to be written."},
    DeviceFigure{&disk::DiskReport::purge_log_entries, "purge_log_entries", false,
                 "Purges that a disk remembers."},
    DeviceFigure{&disk::DiskReport::purge_log_overflows, "purge_log_overflows", true,
                 "Times that a full purge log was made one purge of all that is older."},
};

}  // namespace encore::server

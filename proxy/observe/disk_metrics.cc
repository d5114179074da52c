#include "proxy/observe/disk_metrics.h"

#include <array>
#include <cstddef>

namespace encore::server {
namespace {

using Disk = cache::DiskStatistics::Disk;

struct Family {
  std::string_view name;
  std::string_view type;
  std::string_view help;
};

// The size of storable responses belongs to no disk.
std::string total_name(std::string_view counter) {
  return fmt::format("{}{}_total", counter == "storable_bytes" ? "" : "disk_", counter);
}

class DiskWriter {
 public:
  DiskWriter(MetricsWriter& out, const cache::DiskStatistics& disk) : out_(out), disk_(disk) {}

  // A sample a disk.
  template <typename Get>
  void each(const Family& family, Get get) {
    out_.family(family.name, family.type, family.help);
    for (std::size_t i = 0; i < disk_.disks.size(); ++i) {
      out_.sample(family.name, fmt::format("disk=\"{}\"", i), get(disk_.disks[i]));
    }
  }

  // A sample a disk and reason.
  void placed() {
    constexpr std::string_view kName = "disk_placed_bytes_total";
    out_.family(
        kName, "counter",
        "Space allocated on a disk: for new responses (admit) and re-inserted ones (move).");
    for (std::size_t i = 0; i < disk_.disks.size(); ++i) {
      why(kName, i, "admit", disk_.disks[i].admitted_bytes);
      why(kName, i, "move", disk_.disks[i].moved_bytes);
    }
  }

  void devices(std::span<const disk::DiskReport> devices) {
    constexpr std::string_view kWritten = "disk_bytes_written_total";
    out_.family("disk_info", "gauge", "Path of a disk.");
    for (std::size_t i = 0; i < devices.size(); ++i) {
      out_.sample("disk_info",
                  fmt::format("disk=\"{}\",path=\"{}\"", i, label_value(devices[i].path)), 1);
    }
    out_.family(kWritten, "counter",
                "Bytes written to a device: new responses (admit), re-inserted ones (move), "
                "metadata (format).");
    for (std::size_t i = 0; i < devices.size(); ++i) {
      why(kWritten, i, "admit", devices[i].admit_bytes);
      why(kWritten, i, "move", devices[i].move_bytes);
      why(kWritten, i, "format", devices[i].format_bytes);
    }
    for (const DeviceFigure& figure : kDeviceFigures) {
      const std::string name =
          fmt::format("disk_{}{}", figure.name, figure.is_counter ? "_total" : "");
      out_.family(name, figure.is_counter ? "counter" : "gauge", figure.help);
      for (std::size_t i = 0; i < devices.size(); ++i) {
        out_.sample(name, fmt::format("disk=\"{}\"", i), devices[i].*figure.member);
      }
    }
    constexpr std::string_view kPaused = "disk_writes_paused";
    out_.family(kPaused, "gauge", "1: writing is paused after failures.");
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const bool is_paused = devices[i].condition == disk::DiskCondition::kWritesPaused;
      out_.sample(kPaused, fmt::format("disk=\"{}\"", i), is_paused ? 1 : 0);
    }
  }

  template <std::size_t kCount>
  void by(std::string_view label, const Family& family,
          const std::array<std::string_view, kCount>& names,
          const std::array<std::uint64_t, kCount>& counts) {
    out_.family(family.name, family.type, family.help);
    for (std::size_t i = 0; i < kCount; ++i) {
      out_.sample(family.name, fmt::format("{}=\"{}\"", label, names[i]), counts[i]);
    }
  }

 private:
  void why(std::string_view name, std::size_t disk, std::string_view reason, std::uint64_t bytes) {
    out_.sample(name, fmt::format("disk=\"{}\",why=\"{}\"", disk, reason), bytes);
  }

  MetricsWriter& out_;
  const cache::DiskStatistics& disk_;
};

}  // namespace

void write_disks(MetricsWriter& out, const cache::DiskStatistics& disk,
                 std::span<const disk::DiskReport> devices) {
  if (disk.disks.empty()) return;
  DiskWriter writer(out, disk);
  writer.each({"disk_segments", "gauge", "Segments of a disk."},
              [](const Disk& each) { return each.segments; });
  writer.each({"disk_free_segments", "gauge", "Free segments of a disk."},
              [](const Disk& each) { return each.free_segments; });
  writer.each({"disk_capacity_bytes", "gauge", "Capacity of a disk's segments."},
              [](const Disk& each) { return each.segments * each.segment_bytes; });
  writer.each({"disk_objects", "gauge", "Stored responses on a disk."},
              [](const Disk& each) { return each.objects; });
  writer.each({"disk_parts", "gauge", "Parts of large responses on a disk."},
              [](const Disk& each) { return each.parts; });
  writer.each({"disk_live_bytes", "gauge",
               "Bytes of stored responses and parts on a disk, padding included."},
              [](const Disk& each) { return each.live_bytes; });
  writer.placed();
  writer.each({"disk_write_amplification", "gauge", "Bytes written per byte of new responses."},
              [](const Disk& each) { return each.write_amplification(); });
  writer.each({"disk_offline", "gauge", "1: the disk has failed and is not used."},
              [](const Disk& each) { return each.offline ? 1 : 0; });
  writer.each({"disk_loading", "gauge", "1: the disk is still being read at the start."},
              [](const Disk& each) { return each.loading ? 1 : 0; });
  out.one("disk_index_bytes", "gauge", "Memory of the index of all disks, part of cache.memory.",
          disk.index_bytes);
#define ENCORE_DISK_SAMPLE(member, help) \
  out.one(total_name(#member), "counter", help, disk.counters.member);
  ENCORE_DISK_COUNTERS(ENCORE_DISK_SAMPLE)
#undef ENCORE_DISK_SAMPLE
  writer.by("outcome",
            {"disk_outcomes_total", "counter", "Stored responses by their outcome for the disks."},
            cache::kDiskOutcomeNames, disk.counters.outcomes);
  writer.by("reason",
            {"disk_losses_total", "counter", "Stored responses that left a disk, by reason."},
            cache::kDiskLossNames, disk.counters.losses);
  writer.by("outcome",
            {"disk_part_outcomes_total", "counter", "Parts of large responses by their outcome."},
            cache::kDiskOutcomeNames, disk.counters.part_outcomes);
  writer.by("reason",
            {"disk_part_losses_total", "counter",
             "Parts of large responses that left a disk, by reason."},
            cache::kDiskLossNames, disk.counters.part_losses);
  if (!devices.empty()) writer.devices(devices);
}

}  // namespace encore::server

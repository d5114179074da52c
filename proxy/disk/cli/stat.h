// Contents of a disk, in numbers. Blocks in the device; thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/cli/monitor.h"
#include "base/units.h"
#include "proxy/disk/cli/inspected_disk.h"
#include "proxy/disk/cli/part_index.h"
#include "proxy/disk/cli/saved_text.h"

namespace encore::disk {

struct CountAndBytes {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;

  void add(std::uint64_t more) {
    ++count;
    bytes += more;
  }
  friend bool operator==(const CountAndBytes&, const CountAndBytes&) = default;
};

// Objects below these, the last class without end: ages in seconds, bodies in bytes.
struct Border {
  std::uint64_t below;
  std::string_view name;
};
inline constexpr std::array kAges = {Border{60, "1 minute"}, Border{3600, "1 hour"},
                                     Border{86'400, "1 day"}, Border{7 * 86'400, "1 week"},
                                     Border{30 * 86'400, "30 days"}};
inline constexpr std::array kSizes = {Border{kKiB, "1KiB"}, Border{16 * kKiB, "16KiB"},
                                      Border{256 * kKiB, "256KiB"}, Border{4 * kMiB, "4MiB"}};

struct DiskStat {
  Superblock superblock;
  std::uint32_t segments_used = 0;
  std::uint32_t segments_unsealed = 0;  // without a sound footer
  std::uint32_t overwritten = 0;        // by a process, while they were read

  // With the room that they take on the disk.
  CountAndBytes objects;             // that a start would serve
  CountAndBytes parts;               // parts of larger bodies, also without a head
  CountAndBytes replaced;            // dead
  CountAndBytes purged;              // dead
  CountAndBytes incomplete;          // dead: some of its parts are on no inspected disk
  CountAndBytes unreadable;          // dead
  std::uint64_t overhead_bytes = 0;  // headers and footers

  // Objects by host, with the bytes of their bodies.
  std::map<std::string, CountAndBytes, std::less<>> hosts;
  std::array<CountAndBytes, kAges.size() + 1> ages;
  std::array<CountAndBytes, kSizes.size() + 1> sizes;
  std::optional<WallSeconds> oldest;  // when it was stored

  // Since the segment was opened that was written longest ago. Nothing: less than an hour.
  std::optional<std::uint64_t> written_a_day;

  std::uint64_t purge_entries = 0;
  std::uint64_t purge_bytes = 0;

  CountAndBytes live() const { return {objects.count + parts.count, objects.bytes + parts.bytes}; }
  CountAndBytes dead() const;
  std::uint32_t segments_free() const { return superblock.segments - segments_used; }
  // Days until so many segments have been written. Nothing: not known.
  std::optional<double> days_for(std::uint64_t segments) const;
};

// Errors: what was purged cannot be read.
Result<DiskStat> stat_disk(const InspectedDisk& disk, PartIndex& parts, WallSeconds now,
                           Monitor& monitor, IsPurged purged = is_purged);

}  // namespace encore::disk

#include "proxy/disk/cli/stat.h"

#include <algorithm>
#include <span>

#include "proxy/disk/cli/live_records.h"
#include "proxy/disk/cli/saved_text.h"
#include "proxy/disk/cli/shown.h"
#include "proxy/disk/cli/wear.h"

namespace encore::disk {
namespace {

std::uint64_t room_of(const RecordLine& line) {
  return std::uint64_t{line.room_units} * cache::kDiskUnit;
}

std::size_t class_of(std::span<const Border> borders, std::uint64_t value) {
  std::size_t i = 0;
  while (i < borders.size() && value >= borders[i].below) ++i;
  return i;
}

class Counter final : public RecordVisitor {
 public:
  Counter(const InspectedDisk& disk, WallSeconds now, Monitor& monitor)
      : disk_(disk), now_(now), monitor_(monitor) {}

  bool on_record(const VisitedRecord& record) override {
    const std::uint64_t room = room_of(record.line);
    amount_of(record.state).add(room);
    if (record.state == RecordState::kObject) count_object(record);
    const std::uint64_t end = std::uint64_t{record.line.unit} * cache::kDiskUnit + room;
    end_ = std::max(end_, end);
    return true;
  }
  bool on_segment(const VisitedSegment& segment) override {
    if (stat_.segments_used++ == 0) newest_end_ = end_;
    if (!segment.has_footer) ++stat_.segments_unsealed;
    stat_.overhead_bytes += cache::kSegmentHeaderBytes + segment.footer_bytes;
    monitor_.advance(disk_.superblock().segment_bytes);
    return true;
  }
  DiskStat finish(const LiveRecords& records) {
    stat_.superblock = disk_.superblock();
    stat_.segments_used = static_cast<std::uint32_t>(records.headers().size());
    stat_.overwritten = records.overwritten();
    stat_.purge_entries = records.purges().entries;
    stat_.purge_bytes = records.purges().used_bytes;
    if (!records.headers().empty()) {
      stat_.written_a_day = written_a_day({.newest = records.headers().front(),
                                           .oldest = records.headers().back(),
                                           .newest_end = newest_end_,
                                           .segment_bytes = disk_.superblock().segment_bytes},
                                          now_);
    }
    return std::move(stat_);
  }

 private:
  CountAndBytes& amount_of(RecordState state) {
    switch (state) {
      case RecordState::kObject:
        return stat_.objects;
      case RecordState::kPart:
        return stat_.parts;
      case RecordState::kPurged:
        return stat_.purged;
      case RecordState::kIncomplete:
        return stat_.incomplete;
      case RecordState::kUnreadable:
        return stat_.unreadable;
      case RecordState::kReplaced:
        break;
    }
    return stat_.replaced;
  }
  void count_object(const VisitedRecord& record) {
    const RecordFields& fields = record.front->fields;
    const std::string_view host = host_of(saved_text(record.front->text).url);
    auto at = stat_.hosts.find(host);
    if (at == stat_.hosts.end()) at = stat_.hosts.emplace(host, CountAndBytes()).first;
    at->second.add(fields.body_bytes);
    stat_.ages[class_of(kAges, age_at(now_, fields.stored_at))].add(fields.body_bytes);
    stat_.sizes[class_of(kSizes, fields.body_bytes)].add(fields.body_bytes);
    stat_.oldest = std::min(stat_.oldest.value_or(fields.stored_at), fields.stored_at);
  }
  const InspectedDisk& disk_;
  WallSeconds now_;
  Monitor& monitor_;
  std::uint64_t end_ = 0;         // end of the records so far, in their segments
  std::uint64_t newest_end_ = 0;  // the same in the newest segment
  DiskStat stat_;
};

}  // namespace

CountAndBytes DiskStat::dead() const {
  CountAndBytes dead;
  for (const CountAndBytes& amount : {replaced, purged, incomplete, unreadable}) {
    dead.count += amount.count;
    dead.bytes += amount.bytes;
  }
  return dead;
}

std::optional<double> DiskStat::days_for(std::uint64_t segments) const {
  if (!written_a_day || *written_a_day == 0) return std::nullopt;
  return static_cast<double>(segments) * static_cast<double>(superblock.segment_bytes) /
         static_cast<double>(*written_a_day);
}

Result<DiskStat> stat_disk(const InspectedDisk& disk, PartIndex& parts, WallSeconds now,
                           Monitor& monitor, IsPurged purged) {
  monitor.begin("segments", disk.superblock().segments * disk.superblock().segment_bytes);
  monitor.in_bytes = true;
  Counter counter(disk, now, monitor);
  LiveRecords records(disk, parts, purged);
  if (auto visited = records.visit(counter); !visited) return std::unexpected(visited.error());
  return counter.finish(records);
}

}  // namespace encore::disk

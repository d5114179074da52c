#include "proxy/disk/cli/segment_check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxy/disk/aligned_buffer.h"
#include "proxy/disk/cli/saved_text.h"
#include "proxy/disk/footer.h"
#include "proxy/disk/segment_bytes.h"
#include "proxy/disk/segment_scan.h"

namespace encore::disk {
namespace {

class Checker {
 public:
  Checker(const InspectedDisk& disk, std::uint32_t segment, std::uint64_t newest)
      : disk_(disk),
        segment_(segment),
        newest_(newest),
        bytes_(disk.file(), disk.superblock(), segment),
        edges_(disk.file(), disk.superblock(), segment, kPageBytes) {}

  SegmentCheck run();

 private:
  std::uint64_t size() const { return disk_.superblock().segment_bytes; }
  void add(std::string what, std::uint64_t offset, std::string why) {
    check_.faults.push_back(
        {.what = std::move(what), .segment = segment_, .offset = offset, .why = std::move(why)});
  }
  void add_footer(const std::string& why) {
    add("footer", size() - kPageBytes, why + "; the records were looked for one by one");
  }
  // Nothing: there is none to check the segment by.
  std::optional<SegmentHeader> check_header();
  // True if its last page ends a footer of this disk, of any turn.
  bool has_old_footer();
  // True if a footer of this turn was written, of which something is lost.
  bool was_footer_of(const SegmentHeader& header);
  void check_by_footer(const Footer& footer);
  void check_by_scan(const SegmentHeader& header);
  void check_gaps(const ScannedSegment& scanned);
  void check_record(std::uint64_t offset, const RecordLine* line);
  void add_record(std::uint64_t offset, Damage damage, std::string url);
  void add_sound(RecordKind kind, std::uint64_t room) {
    ++check_.records;
    check_.parts += kind == RecordKind::kPart ? 1U : 0U;
    check_.record_bytes += room;
  }

  const InspectedDisk& disk_;
  std::uint32_t segment_;
  std::uint64_t newest_;
  SegmentBytes bytes_;
  SegmentBytes edges_;  // its header and its last page: of most free segments all that is read
  Salt salt_ = 0;
  SegmentCheck check_;
};

SegmentCheck Checker::run() {
  const auto header = check_header();
  if (!header) return std::move(check_);
  salt_ = disk_.superblock().salt(segment_, header->sequence);
  auto footer = read_footer(disk_.file(), disk_.superblock(), *header);
  // A process may have written it between these two.
  if (!footer && was_footer_of(*header)) {
    footer = read_footer(disk_.file(), disk_.superblock(), *header);
    if (!footer) add_footer("it is not whole");
  } else if (!footer && header->sequence < newest_) {
    add_footer("there is none");
  }
  if (footer) {
    check_by_footer(*footer);
  } else {
    check_by_scan(*header);
  }
  check_.is_overwritten = !check_.faults.empty() && disk_.is_overwritten(*header);
  return std::move(check_);
}

std::optional<SegmentHeader> Checker::check_header() {
  const auto bytes = edges_.get(0, kPageBytes);
  if (!bytes) {
    check_.is_used = true;
    add("header", 0, edges_.error());
    return std::nullopt;
  }
  const auto page = bytes->first<kPageBytes>();
  const PageKind kind = kind_of_header(page, disk_.superblock(), segment_);
  check_.is_used = kind == PageKind::kOurs || kind == PageKind::kDamaged;
  if (kind == PageKind::kOurs) {
    return decode_segment_header(page, disk_.superblock().uuid, segment_);
  }
  check_.is_used = check_.is_used || (kind == PageKind::kForeign && has_old_footer());
  if (check_.is_used) add("header", 0, "it is not whole: what the segment holds is lost");
  return std::nullopt;
}

bool Checker::has_old_footer() {
  const auto last = edges_.get(size() - kPageBytes, kPageBytes);
  if (!last) return false;
  const auto sequence = footer_sequence(last->first<kPageBytes>());
  return sequence && read_footer(disk_.file(), disk_.superblock(),
                                 {.segment = segment_, .sequence = *sequence});
}

bool Checker::was_footer_of(const SegmentHeader& header) {
  const auto last = edges_.get(size() - kPageBytes, kPageBytes);
  // An unreadable page may be one.
  if (!last) return true;
  if (footer_sequence(last->first<kPageBytes>()) == header.sequence) return true;
  std::array<std::byte, kPageBytes> mended{};
  std::ranges::copy(*last, mended.begin());
  mend_footer(mended, header.sequence);
  const auto length = footer_length(mended, header.sequence, size());
  if (!length) return false;
  const auto all = edges_.get(size() - *length, *length);
  if (!all) return true;
  std::vector<std::byte> footer(all->begin(), all->end());
  std::ranges::copy(mended, footer.end() - std::ptrdiff_t{kPageBytes});
  return decode_footer(footer, header.sequence, salt_, size()).has_value();
}

void Checker::check_by_footer(const Footer& footer) {
  for (const RecordLine& line : footer.lines) {
    check_record(std::uint64_t{line.unit} * cache::kDiskUnit, &line);
  }
}

void Checker::check_by_scan(const SegmentHeader& header) {
  const bool is_newest = header.sequence >= newest_;
  const ScannedSegment scanned = scan_segment(disk_.file(), disk_.superblock(), header);
  for (const RecordLine& line : scanned.footer.lines) {
    add_sound(line.kind, std::uint64_t{line.room_units} * cache::kDiskUnit);
  }
  for (const std::uint64_t offset : scanned.damaged) {
    if (is_newest && offset >= scanned.end) {
      ++check_.unfinished;
    } else {
      check_record(offset, nullptr);
    }
  }
  check_gaps(scanned);
}

// Records stand close together: where that is not so, one has lost its header.
void Checker::check_gaps(const ScannedSegment& scanned) {
  struct Room {
    std::uint64_t begin;
    std::uint64_t bytes;
  };
  std::vector<Room> rooms;
  for (const RecordLine& line : scanned.footer.lines) {
    rooms.push_back({std::uint64_t{line.unit} * cache::kDiskUnit,
                     std::uint64_t{line.room_units} * cache::kDiskUnit});
  }
  for (const std::uint64_t offset : scanned.damaged) {
    const auto header = read_header(bytes_, salt_, offset);
    if (header) rooms.push_back({offset, cache::disk_room(record_bytes(header->shape))});
  }
  std::ranges::sort(rooms, {}, &Room::begin);
  std::uint64_t end = cache::kSegmentHeaderBytes;
  for (const Room& room : rooms) {
    // Smaller ones begin at pages where an earlier version wrote them.
    const bool at_page = room.bytes >= kEarlierPageAligned && room.begin % kPageBytes == 0;
    const std::uint64_t step = at_page ? cache::kDiskPage : cache::kDiskUnit;
    if (room.begin > (end + step - 1) / step * step) {
      add("record", end, "there is none up to " + std::to_string(room.begin));
    }
    end = std::max(end, room.begin + room.bytes);
  }
}

// A record's header, and the line of the footer for it.
bool is_line_of(const RecordLine& line, const RecordHeader& header) {
  const std::uint64_t room = std::uint64_t{line.room_units} * cache::kDiskUnit;
  const cache::DiskPlace place{.disk = 0, .segment = 0, .unit = line.unit, .bytes = room};
  return line == line_of(header.fields, place, line.names) && room >= record_bytes(header.shape);
}

void Checker::check_record(std::uint64_t offset, const RecordLine* line) {
  const auto header = read_header(bytes_, salt_, offset);
  if (!header) return add_record(offset, header.error(), {});
  const auto kept = read_front(bytes_, *header, salt_, offset);
  if (!kept) return add_record(offset, kept.error(), {});
  const auto body = check_body(bytes_, kept->front);
  if (!body) {
    return add_record(offset, body.error(), std::string(saved_text(kept->front.text).url));
  }
  if (line != nullptr && !is_line_of(*line, *header)) {
    return add("footer", offset, "it differs from the record here");
  }
  add_sound(header->fields.kind, cache::disk_room(record_bytes(header->shape)));
}

void Checker::add_record(std::uint64_t offset, Damage damage, std::string url) {
  const auto why = [&]() -> std::string {
    switch (damage) {
      case Damage::kRead:
        return bytes_.error();
      case Damage::kFront:
        return "its text is not whole";
      case Damage::kBody:
        return "its body is not whole";
      case Damage::kHeader:
      case Damage::kKey:
        break;
    }
    return "its header is not whole";
  };
  add("record", offset, why());
  check_.faults.back().url = std::move(url);
}

}  // namespace

SegmentCheck segment_check(const InspectedDisk& disk, std::uint32_t segment, std::uint64_t newest) {
  return Checker(disk, segment, newest).run();
}

}  // namespace encore::disk

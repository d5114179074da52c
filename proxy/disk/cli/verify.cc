#include "proxy/disk/cli/verify.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/units.h"
#include "proxy/disk/aligned_buffer.h"
#include "proxy/disk/cli/saved_text.h"
#include "proxy/disk/cli/segment_check.h"
#include "proxy/disk/purge_log.h"
#include "proxy/disk/segment_scan.h"

namespace encore::disk {
namespace {

class Verifier {
 public:
  Verifier(const InspectedDisk& disk, Monitor& monitor) : disk_(disk), monitor_(monitor) {}

  VerifyReport run() {
    check_size();
    check_superblocks();
    check_purges();
    check_segments();
    return std::move(report_);
  }

 private:
  void add(DiskFault fault) {
    ++report_.fault_count;
    if (report_.faults.size() < VerifyReport::kFaultsMax) {
      report_.faults.push_back(std::move(fault));
    }
  }
  void check_size();
  void check_superblocks();
  void check_purges();
  void check_segments();
  void check_segment(std::uint32_t segment);
  void check_twice(const SegmentHeader& header);

  const InspectedDisk& disk_;
  Monitor& monitor_;
  std::uint64_t newest_ = 0;                         // the highest sequence
  std::map<std::uint64_t, std::uint32_t> segments_;  // by sequence
  VerifyReport report_;
};

void Verifier::check_size() {
  const auto size = disk_.file().size();
  const std::uint64_t wanted = disk_.superblock().disk_bytes();
  if (!size) return add({.what = "disk", .why = size.error().message});
  if (*size < wanted) {
    add({.what = "disk",
         .offset = *size,
         .why = "it ends here, " + format_bytes(wanted - *size) + " too early"});
  }
}

void Verifier::check_superblocks() {
  AlignedBuffer memory(kPageBytes);
  const Page page(memory.first(kPageBytes));
  for (const std::uint64_t offset : {std::uint64_t{0}, kSecondSuperblock}) {
    const auto fault = [&](std::string why) {
      add({.what = "superblock", .offset = offset, .why = std::move(why)});
    };
    if (const auto got = disk_.file().read(page, offset); !got) {
      fault(got.error().message);
      continue;
    }
    const DecodedSuperblock decoded = decode_superblock(page, offset);
    if (decoded.kind != PageKind::kOurs) {
      fault("this copy is not whole; the other one is");
    } else if (decoded.superblock.generation < disk_.superblock().generation) {
      fault("this copy is older than the other one");
    }
  }
}

void Verifier::check_purges() {
  std::vector<PurgeLog::Gap> gaps;
  const auto read = disk_.read_unchanged([&]() -> Result<void> {
    gaps.clear();
    PurgeLog log(disk_.file(), disk_.superblock());
    if (auto loaded = log.load([](const Purge&) {}); !loaded) return loaded;
    report_.purge_entries = log.entries();
    gaps = log.gaps();
    const auto is_whole = [](const PurgeLog::Gap& gap) { return gap.is_unwritten; };
    return std::ranges::all_of(gaps, is_whole) ? Result<void>() : fail("damaged");
  });
  if (!read && gaps.empty()) {
    add({.what = "purge log",
         .offset = disk_.superblock().purge_offset,
         .why = "neither copy can be read: the disk is unusable"});
  }
  for (const PurgeLog::Gap& gap : gaps) {
    if (gap.is_unwritten) {
      ++report_.unfinished;
    } else {
      add({.what = "purge log",
           .offset = gap.offset,
           .why = "this copy is not whole here; the other one is"});
    }
  }
}

void Verifier::check_twice(const SegmentHeader& header) {
  const auto [at, is_first] = segments_.emplace(header.sequence, header.segment);
  if (is_first) return;
  add({.what = "header",
       .segment = header.segment,
       .why = "segment " + std::to_string(at->second) +
              " has the same sequence number; neither is believed"});
}

void Verifier::check_segments() {
  const Superblock& superblock = disk_.superblock();
  for (const SegmentHeader& header : disk_.read_headers()) {
    newest_ = std::max(newest_, header.sequence);
    check_twice(header);
  }
  monitor_.begin("segments", superblock.segments * superblock.segment_bytes);
  monitor_.in_bytes = true;
  for (std::uint32_t segment = 0; segment < superblock.segments; ++segment) {
    check_segment(segment);
    monitor_.advance(superblock.segment_bytes);
  }
}

void Verifier::check_segment(std::uint32_t segment) {
  const SegmentCheck checked = segment_check(disk_, segment, newest_);
  if (checked.is_overwritten) {
    ++report_.overwritten;
    ++report_.segments_used;
    return;
  }
  ++(checked.is_used ? report_.segments_used : report_.segments_free);
  report_.records += checked.records;
  report_.parts += checked.parts;
  report_.record_bytes += checked.record_bytes;
  report_.unfinished += checked.unfinished;
  for (const DiskFault& fault : checked.faults) add(fault);
}

}  // namespace

VerifyReport verify_disk(const InspectedDisk& disk, Monitor& monitor) {
  return Verifier(disk, monitor).run();
}

}  // namespace encore::disk

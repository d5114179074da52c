#include "proxy/disk/recovery.h"

#include <algorithm>
#include <utility>

#include "proxy/disk/aligned_buffer.h"

namespace encore::disk {

Recovery::Recovery(File& file, const Superblock& superblock, PurgeLog& purges, RecoverySink& sink,
                   const RecoveryOptions& options)
    : file_(file),
      superblock_(superblock),
      purges_(purges),
      sink_(sink),
      options_(options),
      ahead_(file_, superblock_) {}

Result<void> Recovery::begin() {
  auto loaded = purges_.load([this](const Purge& purge) {
    if (purge.kind != PurgeKind::kKey) return sink_.on_rule(purge);
    auto& version = purged_[purge.key];
    version = std::max(version, purge.version);
  });
  if (!loaded) return loaded;
  version_max_ = purges_.version_max();
  read_headers();
  return {};
}

void Recovery::read_headers() {
  AlignedBuffer page(kPageBytes);
  sequences_.assign(superblock_.segments, 0);
  for (std::uint32_t segment = 0; segment < superblock_.segments; ++segment) {
    const Page bytes(page.first(kPageBytes));
    if (!file_.read(bytes, superblock_.segment_offset(segment))) {
      has_unknown_ = true;
      ++counts_.unreadable;
      continue;
    }
    const auto header = decode_segment_header(bytes, superblock_.uuid, segment);
    if (!header) continue;
    headers_.push_back(*header);
    version_max_ = std::max(version_max_, header->versions_seen);
  }
  std::ranges::sort(headers_, {}, &SegmentHeader::sequence);
  // No writer gives a sequence twice; of two that say so, neither is believed.
  const auto is_same = [](const auto& a, const auto& b) { return a.sequence == b.sequence; };
  for (;;) {
    const auto twice = std::ranges::adjacent_find(headers_, is_same);
    if (twice == headers_.end()) break;
    std::erase_if(headers_, [sequence = twice->sequence](const SegmentHeader& header) {
      return header.sequence == sequence;
    });
    has_unknown_ = true;
  }
  for (const SegmentHeader& header : headers_) sequences_[header.segment] = header.sequence;
  counts_.segments = static_cast<std::uint32_t>(headers_.size());
  if (!headers_.empty()) ahead_.want(headers_.back(), {});
}

void Recovery::want_next() {
  if (headers_.empty()) {
    ahead_.release();
    spare_ = {};
    return;
  }
  ahead_.want(headers_.back(), std::exchange(spare_, {}));
  sink_.on_ahead();
}

SegmentWriter::FoundState Recovery::found() const {
  // Versions that were given and never found may be above all that were seen (docs/decisions/0110).
  cache::DiskVersion version = version_max_ + kVersionsLost;
  if (has_unknown_) {
    version = std::max(version, cache::DiskVersion{options_.now} << kVersionsASecond);
  }
  return {sequences_, version, has_unknown_};
}

bool Recovery::step() {
  if (headers_.empty()) return false;
  // The newest first: what is found later never takes the place of a newer record.
  const SegmentHeader header = headers_.back();
  headers_.pop_back();
  auto footer = ahead_.take();
  want_next();
  if (footer) {
    tell(header, std::move(*footer));
    return true;
  }
  ScannedSegment scanned = scan_segment(file_, superblock_, header);
  ++counts_.scanned;
  counts_.damaged_records += scanned.damaged.size();
  if (!scanned.is_readable) ++counts_.unreadable;
  // A segment that may be readable another time is not discarded for good.
  if (options_.writes_footers && scanned.is_readable) {
    if (options_.defers_footers) {
      deferred_.push_back({header, scanned.footer, scanned.end});
    } else {
      write_footer(header, scanned.footer, scanned.end);
    }
  }
  tell(header, std::move(scanned.footer));
  return true;
}

void Recovery::write_footer(const SegmentHeader& header, const Footer& footer, std::uint64_t end) {
  const std::uint64_t bytes = footer_bytes(footer);
  if (bytes > superblock_.segment_bytes - std::max<std::uint64_t>(end, kPageBytes)) return;
  AlignedBuffer memory(bytes);
  encode_footer(footer, superblock_.salt(header.segment, header.sequence),
                superblock_.segment_bytes, memory.first(bytes));
  const std::uint64_t at =
      superblock_.segment_offset(header.segment) + superblock_.segment_bytes - bytes;
  // On failure, the next start scans again.
  (void)file_.write(memory.first(bytes), at);
}

void Recovery::write_footers() {
  AlignedBuffer page(kPageBytes);
  for (const DeferredFooter& each : std::exchange(deferred_, {})) {
    // The segment may have been reclaimed in the meantime, and have other records.
    const Page bytes(page.first(kPageBytes));
    const std::uint32_t segment = each.header.segment;
    if (!file_.read(bytes, superblock_.segment_offset(segment))) continue;
    const auto header = decode_segment_header(bytes, superblock_.uuid, segment);
    if (!header || header->sequence != each.header.sequence) continue;
    write_footer(each.header, each.footer, each.end);
  }
}

void Recovery::tell(const SegmentHeader& header, Footer footer) {
  version_max_ = std::max(version_max_, footer.version_max);
  counts_.purged += std::erase_if(footer.lines, [this](const RecordLine& line) {
    const auto found = purged_.find(line.key);
    return found != purged_.end() && line.version < found->second;
  });
  counts_.records += footer.lines.size();
  for (std::span<const RecordLine> rest = footer.lines; !rest.empty();) {
    const auto lines = rest.first(std::min(rest.size(), options_.batch));
    sink_.on_records({header.segment, header.sequence, header.opened_at, lines, footer.names});
    rest = rest.subspan(lines.size());
  }
  if (!headers_.empty()) spare_ = std::move(footer.lines);
}

}  // namespace encore::disk

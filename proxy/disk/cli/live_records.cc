#include "proxy/disk/cli/live_records.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "proxy/disk/segment_scan.h"

namespace encore::disk {
namespace {

// Fronts are near each other where records are small, and far apart where they are large.
constexpr std::uint64_t kWindowBytes = 64U << 10U;

filter::Hash128 identity_of(const RecordLine& line) {
  // Variants are hashes themselves.
  return {line.key.lo ^ line.variant, line.key.hi};
}

}  // namespace

Result<void> LiveRecords::visit(RecordVisitor& visitor) {
  auto purges = disk_.read_purges();
  if (!purges) return std::unexpected(purges.error());
  purges_ = std::move(*purges);
  headers_ = disk_.read_headers();
  for (const SegmentHeader& header : headers_) {
    if (!visit_segment(header, visitor)) break;
  }
  return {};
}

std::vector<bool> LiveRecords::newest_of(std::span<const RecordLine> lines) const {
  std::vector<bool> is_newest(lines.size());
  std::unordered_map<filter::Hash128, std::size_t, HashOfKey> newest;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].kind == RecordKind::kPart || is_purged_key(lines[i])) continue;
    const filter::Hash128 identity = identity_of(lines[i]);
    if (told_.contains(identity)) continue;
    const auto [at, is_first] = newest.emplace(identity, i);
    if (!is_first && lines[i].version <= lines[at->second].version) continue;
    is_newest[at->second] = false;
    is_newest[i] = true;
    at->second = i;
  }
  return is_newest;
}

bool LiveRecords::is_purged_key(const RecordLine& line) const {
  const auto found = purges_.keys.find(line.key);
  return found != purges_.keys.end() && line.version < found->second;
}

RecordState LiveRecords::judge(const RecordLine& line, const RecordFront& front) const {
  // A footer is believed no more than an index would be.
  if (front.fields.key != line.key || front.fields.version != line.version) {
    return RecordState::kUnreadable;
  }
  const bool is_dead = std::ranges::any_of(
      purges_.rules, [&](const Purge& rule) { return is_purged_(rule, front.fields, front.text); });
  if (is_dead) return RecordState::kPurged;
  return RecordState::kObject;
}

bool LiveRecords::visit_newest(const RecordLine& line, SegmentBytes& bytes,
                               const SegmentHeader& header, RecordVisitor& visitor) {
  const Salt salt = disk_.superblock().salt(header.segment, header.sequence);
  const std::uint64_t offset = std::uint64_t{line.unit} * cache::kDiskUnit;
  const auto kept = read_front(bytes, salt, offset);
  VisitedRecord seen{.segment = header, .line = line, .state = RecordState::kUnreadable};
  if (kept) seen.state = judge(line, kept->front);
  told_.insert(identity_of(line));
  if (seen.state == RecordState::kObject) {
    seen.front = &kept->front;
    if (kept->front.fields.kind == RecordKind::kHead) seen.parts = parts_.find(kept->front.fields);
    if (!seen.parts.is_whole()) seen.state = RecordState::kIncomplete;
  }
  return visitor.on_record(seen);
}

bool LiveRecords::visit_segment(const SegmentHeader& header, RecordVisitor& visitor) {
  auto footer = read_footer(disk_.file(), disk_.superblock(), header);
  const bool has_footer = footer.has_value();
  if (!footer && disk_.is_overwritten(header)) {
    ++overwritten_;
    return true;
  }
  if (!footer) footer = scan_segment(disk_.file(), disk_.superblock(), header).footer;
  const std::vector<RecordLine>& lines = footer->lines;
  const std::vector<bool> is_newest = newest_of(lines);
  SegmentBytes bytes(disk_.file(), disk_.superblock(), header.segment, kWindowBytes);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (is_newest[i] && !visit_newest(lines[i], bytes, header, visitor)) return false;
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (is_newest[i]) continue;
    const auto state = lines[i].kind == RecordKind::kPart ? RecordState::kPart
                       : is_purged_key(lines[i])          ? RecordState::kPurged
                                                          : RecordState::kReplaced;
    if (!visitor.on_record({.segment = header, .line = lines[i], .state = state})) return false;
  }
  if (disk_.is_overwritten(header)) ++overwritten_;
  return visitor.on_segment({.header = header,
                             .has_footer = has_footer,
                             .footer_bytes = has_footer ? footer_bytes(*footer) : 0,
                             .records = static_cast<std::uint32_t>(lines.size())});
}

}  // namespace encore::disk

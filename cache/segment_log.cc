#include "cache/segment_log.h"

#include <algorithm>

#include "base/check.h"

namespace encore::cache {

SegmentLog::SegmentLog(const Settings& settings)
    : settings_(settings),
      wanted_(settings.segments),
      segments_(settings.segments),
      free_(settings.segments) {}

std::optional<std::uint32_t> SegmentLog::unit_in(const Filled& filled, const Record& record,
                                                 bool has_names) const {
  const std::uint64_t room = disk_room(record.bytes);
  const std::uint64_t step = room >= kDiskPageAligned ? kDiskPage : kDiskUnit;
  const std::uint64_t used = std::uint64_t{filled.used_units} * kDiskUnit;
  const std::uint64_t offset = (used + step - 1) / step * step;
  FooterContent footer = filled.footer;
  ++footer.records;
  if (record.names != 0 && !has_names) {
    footer.names_bytes += kFooterNameBytes + record.names_bytes;
  }
  // Sizes come from the origin: no sum of them may wrap.
  if (room > settings_.segment_bytes ||
      offset + room + footer_bytes(footer) > settings_.segment_bytes) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(offset / kDiskUnit);
}

bool SegmentLog::fits_empty(const Record& record) const {
  return record.bytes != 0 && record.bytes <= settings_.segment_bytes &&
         unit_in({}, record, false).has_value();
}

std::optional<PlacedRecord> SegmentLog::place(const Record& record) {
  if (!fits_empty(record)) {
    return std::nullopt;
  }
  std::optional<std::uint32_t> unit;
  const auto unit_in_active = [&] {
    const Segment& active = segments_[*active_];
    return unit_in({active.used_units, {active.records, names_bytes_}}, record,
                   has_names_[record.names]);
  };
  if (active_) {
    unit = unit_in_active();
  }
  if (!unit) {
    if (!open_next(record.why)) {
      return std::nullopt;
    }
    unit = unit_in_active();
    ENCORE_CHECK(unit, "an empty segment takes what fits an empty segment");
  }
  Segment& active = segments_[*active_];
  const std::uint64_t room = disk_room(record.bytes);
  if (record.names != 0 && !has_names_[record.names]) {
    has_names_[record.names] = true;
    names_bytes_ += kFooterNameBytes + record.names_bytes;
  }
  ENCORE_CHECK(*unit >= active.used_units, "a record lies behind the one before it");
  active.used_units = *unit + static_cast<std::uint32_t>(room / kDiskUnit);
  ENCORE_CHECK(std::uint64_t{active.used_units} * kDiskUnit <= settings_.segment_bytes,
               "a record ends in its segment");
  PlacedRecord placed{
      .place = {.disk = settings_.disk, .segment = *active_, .unit = *unit, .bytes = room},
      .turn = {},
      .order = ++order_};
  if (turned_) {
    placed.turn = {settings_.disk, *active_, active.sequence};
    turned_ = false;
  }
  found(placed.place, true);
  return placed;
}

bool SegmentLog::open_next(WriteReason why) {
  // The last free segment is for what moves: without it a reclaim could only drop.
  if (free_ < (why == WriteReason::kAdmit ? 2U : 1U)) {
    return false;
  }
  while (cursor_ >= wanted_ || segments_[cursor_].state != State::kFree) {
    cursor_ = cursor_ + 1 >= wanted_ ? 0 : cursor_ + 1;
  }
  seal();
  segments_[cursor_] = {.state = State::kActive,
                        .used_units = kSegmentHeaderBytes / kDiskUnit,
                        .sequence = ++sequence_};
  active_ = cursor_++;
  --free_;
  names_bytes_ = 0;
  has_names_.reset();
  turned_ = true;
  return true;
}

void SegmentLog::seal() {
  if (active_) {
    segments_[*active_].state = State::kSealed;
    sealed_.push_back(*active_);
    active_.reset();
  }
}

void SegmentLog::mark_dead(const DiskPlace& place) {
  Segment& segment = segments_[place.segment];
  ENCORE_CHECK(segment.live_records != 0 && segment.live_bytes >= place.bytes,
               "a record dies once");
  ENCORE_CHECK(live_records_ != 0 && live_bytes_ >= place.bytes, "the log counts its segments'");
  --segment.live_records;
  segment.live_bytes -= place.bytes;
  --live_records_;
  live_bytes_ -= place.bytes;
}

void SegmentLog::found(const DiskPlace& place, bool is_live) {
  Segment& segment = segments_[place.segment];
  ENCORE_CHECK(segment.state == State::kActive || segment.state == State::kSealed,
               "a record lies in a segment that is written");
  ++segment.records;
  segment.bytes += place.bytes;
  if (is_live) {
    ++segment.live_records;
    segment.live_bytes += place.bytes;
    ++live_records_;
    live_bytes_ += place.bytes;
  }
}

std::optional<std::uint32_t> SegmentLog::oldest() const {
  if (segments_.size() > wanted_) {
    const auto beyond =
        std::ranges::find_if(sealed_, [&](std::uint32_t number) { return number >= wanted_; });
    if (beyond != sealed_.end()) {
      return *beyond;
    }
  }
  return oldest_in_order();
}

void SegmentLog::begin_reclaim(std::uint32_t segment) {
  ENCORE_CHECK(segment < segments_.size() && segments_[segment].state == State::kSealed,
               "only a sealed segment is reclaimed");
  segments_[segment].state = State::kReclaimed;
  sealed_.erase(std::ranges::find(sealed_, segment));
}

bool SegmentLog::end_reclaim(std::uint32_t segment) {
  if (segment >= segments_.size() || segments_[segment].state != State::kReclaimed ||
      segments_[segment].live_records != 0) {
    return false;
  }
  ENCORE_CHECK(segments_[segment].live_bytes == 0, "where no record lives no byte does");
  segments_[segment] = {.state = segment < wanted_ ? State::kFree : State::kGone};
  free_ += segment < wanted_ ? 1 : 0;
  drop_gone();
  return true;
}

void SegmentLog::drop_gone() {
  while (segments_.size() > wanted_ && segments_.back().state == State::kGone) {
    segments_.pop_back();
  }
}

void SegmentLog::resize(std::uint32_t segments) {
  ENCORE_CHECK(segments != 0 && segments <= kSegmentsMax, "a disk has segments");
  wanted_ = segments;
  segments_.resize(std::max<std::size_t>(segments_.size(), segments));
  if (active_ && *active_ >= wanted_) {
    seal();
  }
  free_ = 0;
  for (std::uint32_t number = 0; number < segments_.size(); ++number) {
    Segment& segment = segments_[number];
    if (segment.state == State::kFree || segment.state == State::kGone) {
      segment.state = number < wanted_ ? State::kFree : State::kGone;
    }
    free_ += segment.state == State::kFree ? 1 : 0;
  }
  drop_gone();
}

void SegmentLog::attach(std::span<const std::uint64_t> sequences) {
  ENCORE_CHECK(sequence_ == 0, "what was found comes before what is placed");
  segments_.resize(std::max<std::size_t>(sequences.size(), wanted_));
  for (std::uint32_t number = 0; number < sequences.size(); ++number) {
    if (sequences[number] != 0) {
      segments_[number] = {.state = State::kSealed, .sequence = sequences[number]};
      sealed_.push_back(number);
      sequence_ = std::max(sequence_, sequences[number]);
    }
  }
  // One number is left out: of the turn that a crash may have taken back, records may still lie
  // there that fit its number.
  ++sequence_;
  std::ranges::sort(sealed_, {}, [&](std::uint32_t number) { return segments_[number].sequence; });
  // The ring goes on behind the newest.
  cursor_ = sealed_.empty() ? 0 : sealed_.back() + 1;
  resize(wanted_);
}

}  // namespace encore::cache

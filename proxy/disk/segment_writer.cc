#include "proxy/disk/segment_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace encore::disk {

SegmentWriter::SegmentWriter(File& file, const Superblock& superblock, FoundState found)
    : file_(file),
      superblock_(superblock),
      sequences_(std::move(found.sequences)),
      has_unknown_(found.has_unknown),
      version_max_(found.version_max) {
  sequences_.resize(superblock.segments);
  sequence_max_ = std::ranges::max(sequences_);
}

std::uint64_t SegmentWriter::sequence_min() const {
  if (has_unknown_) return 0;
  // If there is none, all turns so far are gone; those to come are not.
  std::uint64_t lowest = sequence_max_ + 1;
  // The open one's header may come later than its records.
  if (turn_) lowest = turn_->sequence;
  for (const std::uint64_t sequence : sequences_) {
    if (sequence != 0) lowest = std::min(lowest, sequence);
  }
  return lowest;
}

Result<void> SegmentWriter::open(const cache::SegmentTurn& turn, WallSeconds now) {
  ENCORE_CHECK(turn.segment < superblock_.segments && turn.sequence > sequence_max_,
               "segments are opened in the order of their sequence");
  // Its records report the failure, and begin_turn() repairs it.
  (void)seal();
  sequence_max_ = turn.sequence;
  turn_ = SegmentHeader{.segment = turn.segment,
                        .sequence = turn.sequence,
                        .versions_seen = version_max_,
                        .opened_at = now};
  has_header_ = false;
  salt_ = superblock_.salt(turn.segment, turn.sequence);
  begin_ = cache::kSegmentHeaderBytes;
  filled_ = unchanged_ = 0;
  return begin_turn();
}

Result<void> SegmentWriter::begin_turn() {
  if (has_header_) return {};
  if (doubtful_) {
    // A sync that failed once says nothing by succeeding later: what it was for is written anew.
    if (auto written = write_header(*doubtful_); !written) return written;
    if (auto synced = file_.sync(); !synced) return synced;
    doubtful_.reset();
  }
  if (auto written = write_header(*turn_); !written) return written;
  has_header_ = true;
  sequences_[turn_->segment] = turn_->sequence;
  return {};
}

Result<void> SegmentWriter::write_header(const SegmentHeader& header) {
  AlignedBuffer page(kPageBytes);
  encode(header, superblock_.uuid, Page(page.first(kPageBytes)));
  written_bytes_ += kPageBytes;
  return file_.write(page.first(kPageBytes), superblock_.segment_offset(header.segment));
}

Result<void> SegmentWriter::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  written_bytes_ += bytes.size();
  return file_.write(bytes, superblock_.segment_offset(turn_->segment) + offset);
}

void SegmentWriter::add(const Record& record, const cache::DiskPlace& place) {
  const RecordShape shape = shape_of(record);
  const std::uint64_t end = place.offset() + record_bytes(shape);
  ENCORE_CHECK(turn_ && place.segment == turn_->segment && place.offset() >= begin_ + filled_ &&
                   record_bytes(shape) <= place.bytes &&
                   place.offset() + place.bytes <= superblock_.segment_bytes,
               "a record is placed behind the last one, with room for it");
  version_max_ = std::max(version_max_, record.fields.version);
  front_.resize(front_bytes(shape));
  encode_front(record, salt_, place.offset(), front_);
  seek(place.offset());
  pending_.push_back({end,
                      {record.fields.version, place, false},
                      line_of(record.fields, place, footer_.names.number_of(record.text.names))});
  if (!append(front_)) return;
  seek(place.offset() + body_begin(shape));
  for (const iovec& part : record.body) {
    if (!append({static_cast<const std::byte*>(part.iov_base), part.iov_len})) return;
  }
  ENCORE_CHECK(begin_ + filled_ == end, "a body of another length");
}

void SegmentWriter::seek(std::uint64_t offset) {
  // A gap longer than the buffer stays as it lies: no checksum is of it.
  if (offset - begin_ > buffer_.size()) {
    // Its error has reached the records.
    (void)write_out();
    begin_ = offset / kPageBytes * kPageBytes;
    filled_ = unchanged_ = 0;
  }
  const auto at = static_cast<std::size_t>(offset - begin_);
  std::fill(buffer_.data() + filled_, buffer_.data() + at, std::byte{0});
  filled_ = at;
}

bool SegmentWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (filled_ == buffer_.size() && !write_out()) return false;
    const std::size_t step = std::min(bytes.size(), buffer_.size() - filled_);
    std::memcpy(buffer_.data() + filled_, bytes.data(), step);
    filled_ += step;
    bytes = bytes.subspan(step);
  }
  return true;
}

Result<void> SegmentWriter::write_out() {
  if (filled_ == unchanged_) return {};
  const std::size_t whole = filled_ / kPageBytes * kPageBytes;
  // The last page is written again with more behind these bytes, which stay as they are: a torn
  // write changes nothing that was there (docs/decisions/0110).
  const std::size_t kept = filled_ - whole;
  const std::size_t bytes = kept == 0 ? whole : whole + kPageBytes;
  std::fill(buffer_.data() + filled_, buffer_.data() + bytes, std::byte{0});
  auto written = begin_turn();
  if (written) written = write(buffer_.first(bytes), begin_);
  finish(begin_ + filled_, written.has_value());
  // Also after an error, for others' bytes are in that page.
  std::memmove(buffer_.data(), buffer_.data() + whole, kept);
  begin_ += whole;
  filled_ = unchanged_ = kept;
  return written;
}

void SegmentWriter::finish(std::uint64_t end, bool is_written) {
  // A record of which a piece is lost is lost, also where it goes on.
  while (!pending_.empty() && (!is_written || pending_.front().end <= end)) {
    Pending& done = pending_.front();
    done.written.is_written = is_written;
    if (is_written) {
      footer_.lines.push_back(done.line);
      footer_.version_max = std::max(footer_.version_max, done.line.version);
    }
    written_.push_back(done.written);
    pending_.pop_front();
  }
}

Result<void> SegmentWriter::erase(std::uint32_t segment) {
  ENCORE_CHECK(segment < superblock_.segments && (!turn_ || turn_->segment != segment),
               "what is being written is not erased");
  // The header of a later turn must be there before this one's is erased: the highest sequence on a
  // disk never falls (docs/decisions/0440).
  const std::uint64_t sequence = sequences_[segment];
  const bool is_last_but_one = std::ranges::none_of(sequences_, [&](std::uint64_t other) {
    return other > sequence && (!turn_ || other != turn_->sequence);
  });
  if (sequence != 0 && turn_ && is_last_but_one) {
    if (auto begun = begin_turn(); !begun) return begun;
    if (auto synced = file_.sync(); !synced) return synced;
  }
  AlignedBuffer page(kPageBytes);
  std::ranges::fill(page.first(kPageBytes), std::byte{0});
  written_bytes_ += kPageBytes;
  const std::uint64_t at = superblock_.segment_offset(segment);
  if (auto written = file_.write(page.first(kPageBytes), at); !written) return written;
  if (auto synced = file_.sync(); !synced) return synced;
  sequences_[segment] = 0;
  // Whether its header was durable is of no meaning any more.
  if (doubtful_ && doubtful_->segment == segment) doubtful_.reset();
  return {};
}

Result<void> SegmentWriter::flush() { return turn_ ? write_out() : Result<void>(); }

Result<void> SegmentWriter::seal() {
  if (!turn_) return {};
  auto done = write_out();
  ENCORE_CHECK(pending_.empty(), "no record waits for a segment that is over");
  // Without its header nothing of the turn is found, and a footer would be of no use.
  if (has_header_) {
    if (auto footed = write_footer(); !footed && done) done = footed;
    const auto synced = file_.sync();
    if (!synced) doubtful_ = turn_;
    if (!synced && done) done = synced;
  }
  turn_.reset();
  footer_.lines.clear();
  footer_.names.clear();
  footer_.version_max = 0;
  return done;
}

Result<void> SegmentWriter::write_footer() {
  footer_.sequence = turn_->sequence;
  const std::uint64_t bytes = footer_bytes(footer_);
  ENCORE_CHECK(begin_ + filled_ + bytes <= superblock_.segment_bytes, "no room for the footer");
  AlignedBuffer footer(bytes);
  encode_footer(footer_, salt_, superblock_.segment_bytes, footer.first(bytes));
  return write(footer.first(bytes), superblock_.segment_bytes - bytes);
}

}  // namespace encore::disk

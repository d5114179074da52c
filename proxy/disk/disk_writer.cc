#include "proxy/disk/disk_writer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "proxy/disk/segment_scan.h"

namespace encore::disk {
namespace {

// Steps of the kernel in one call, each of so many entries.
constexpr int kReclaimSteps = 64;
// More is written immediately, and not with the writes of the second after it
// (docs/decisions/0427).
constexpr std::uint64_t kFlushBytes = 128U << 10U;

}  // namespace

bool DiskWriter::work() {
  if (is_held_) return false;
  const bool has_more = drain(step_bytes_);
  // A record that is not written yet is not found. Nothing else has a large body, and the copy in
  // memory of another may be gone soon: who comes in the second of a flush would ask the origin
  // again.
  if (!has_more && (has_large_ || unflushed_bytes_ >= kFlushBytes)) flush();
  report();
  return reclaim() || has_more;
}

bool DiskWriter::tick() {
  if (is_held_) return false;
  // Too little has come yet to have woken anybody (docs/decisions/0170).
  bool has_more = drain(step_bytes_);
  // In a pause, too: what was added before it is written or known to be lost.
  if (!state_.is_offline()) flush();
  (void)can_write();
  has_more |= reclaim();
  (void)log_.append_tombstones();
  return has_more;
}

bool DiskWriter::finish() {
  if (is_held_) return true;
  while (drain(step_bytes_)) {
  }
  // Behind a place that nobody has told of.
  while (auto wanted = queue_.take_any()) give_up(*wanted);
  flush();
  // Erases reclaimed segments, which would be found again otherwise.
  free_reclaimed();
  const bool is_remembered = log_.append_tombstones().has_value();
  if (state_.is_offline()) return is_remembered;
  const bool is_sealed = segments_.seal().has_value();
  report();
  // A failure of the last writes may have to be buried, too.
  return is_sealed && log_.append_tombstones().has_value() && is_remembered;
}

bool DiskWriter::hold() {
  if (state_.is_offline()) return is_held_ = true;
  while (drain(step_bytes_)) {
  }
  flush();
  free_reclaimed();
  is_held_ = log_.append_tombstones().has_value() && state_.file.sync().has_value();
  return is_held_;
}

std::vector<Purge> DiskWriter::take_unwritten() {
  ENCORE_CHECK(is_held_, "another process has the disk");
  std::vector<Purge> unwritten;
  while (auto wanted = queue_.take_any()) {
    if (!wanted->key) continue;
    Purge& purge = unwritten.emplace_back();
    purge.key = *wanted->key;
    purge.version = wanted->version;
  }
  return unwritten;
}

// --- writing -----------------------------------------------------------------------------------

bool DiskWriter::drain(std::uint64_t bytes_max) {
  for (std::uint64_t bytes = 0; bytes < bytes_max;) {
    auto next = queue_.take();
    if (!next) return false;
    bytes += next->place.bytes;
    write(std::move(*next));
  }
  return true;
}

bool DiskWriter::can_write() {
  if (paused_until_ && now() < *paused_until_) return false;
  const CountedFile::Count& writes = state_.file.writes();
  const std::uint64_t failures = writes.failed.load();
  if (paused_until_) {
    paused_until_.reset();
    failures_before_ = failures;
  }
  // Behind a pause the row still counts: one more failure begins the next pause.
  if (writes.failed_in_row.load() >= kFailedWritesMax && failures > failures_before_) {
    paused_until_ = now() + kPause;
    ++state_.pauses;
  }
  state_.is_paused = paused_until_.has_value();
  return !paused_until_;
}

void DiskWriter::write(PendingWrite wanted) {
  if (state_.is_offline()) return give_up(wanted);
  if (wanted.turn.sequence != 0) {
    // A failed open is tried again with the records; a paused disk has its turns, too.
    (void)segments_.open(wanted.turn, state_.common->clocks.wall_seconds());
    state_.set_sequence(wanted.turn.segment, wanted.turn.sequence);
    report();
  }
  if (!can_write()) return give_up(wanted);
  if (wanted.from) {
    if (!move(wanted)) give_up(wanted);
    return;
  }
  if (wanted.source == nullptr) return give_up(wanted);
  Record record = wanted.source->record();
  record.fields.version = wanted.version;
  const RecordShape shape = shape_of(record);
  if (!is_sound(shape) || record_bytes(shape) > wanted.place.bytes) return give_up(wanted);
  add(record, wanted);
}

void DiskWriter::add(const Record& record, const PendingWrite& wanted) {
  added_.push_back({*wanted.key, wanted.place, wanted.from.has_value()});
  moves_added_ += wanted.from ? 1U : 0U;
  has_large_ = has_large_ || record.fields.kind != RecordKind::kObject;
  unflushed_bytes_ += wanted.place.bytes;
  segments_.add(record, wanted.place);
}

bool DiskWriter::move(PendingWrite& wanted) {
  const cache::DiskPlace& from = *wanted.from;
  const auto opened =
      reader_.open({.place = from, .sequence = state_.sequence(from.segment), .key = std::nullopt});
  if (!opened) {
    ++state_.damaged;
    return false;
  }
  const RecordFront& front = **opened;
  wanted.key = front.fields.key;
  // At its new place, nothing would know any more that it was purged.
  if (state_.rules.is_dead(front)) return false;
  const auto body = read_body(front);
  if (!body) {
    ++state_.damaged;
    return false;
  }
  const iovec piece{const_cast<std::byte*>(body->data()), body->size()};
  add({.fields = front.fields, .text = front.text, .body = {&piece, 1}}, wanted);
  return true;
}

std::expected<std::span<const std::byte>, Damage> DiskWriter::read_body(const RecordFront& front) {
  const std::uint64_t bytes = front.shape.body_bytes;
  if (body_.size() < bytes) body_ = AlignedBuffer(static_cast<std::size_t>(bytes));
  for (std::uint64_t done = 0; done < bytes;) {
    const auto out = std::span(body_.data() + done, body_.size() - done);
    const auto got = reader_.read_into(done, out);
    if (!got) return std::unexpected(got.error());
    done += *got;
  }
  return body_.first(static_cast<std::size_t>(bytes));
}

void DiskWriter::give_up(PendingWrite& wanted) {
  if (!wanted.key && !state_.is_offline()) wanted.key = key_at(*wanted.from);
  // Otherwise the next lookup finds that it is not there.
  if (wanted.key) {
    failed(*wanted.key, wanted.place);
  } else {
    ++state_.failed_records;
  }
  if (wanted.from) state_.moves.end(wanted.place);
}

void DiskWriter::failed(const filter::Hash128& key, const cache::DiskPlace& place) {
  ++state_.failed_records;
  const auto tombstone = state_.common->kernel.use([&](cache::Kernel& kernel) {
    return kernel.written({key, {}}, place, cache::Kernel::Write::kFailed, now());
  });
  if (tombstone) state_.common->add_tombstone(key, tombstone);
}

void DiskWriter::flush() {
  // The records report its error.
  (void)segments_.flush();
  has_large_ = false;
  unflushed_bytes_ = 0;
  report();
}

void DiskWriter::report() {
  for (const SegmentWriter::Written& written : segments_.take_written()) {
    ENCORE_CHECK(!added_.empty() && added_.front().place == written.place,
                 "what is told was added in that order");
    const Added added = added_.front();
    added_.pop_front();
    if (added.is_move) {
      ENCORE_CHECK(moves_added_ != 0, "a move that is written was added");
      --moves_added_;
    }
    if (!written.is_written) {
      failed(added.key, added.place);
    } else if (added.is_move) {
      state_.move_bytes += added.place.bytes;
    } else {
      state_.admit_bytes += added.place.bytes;
      state_.common->kernel.use([&](cache::Kernel& kernel) {
        kernel.written({added.key, {}}, added.place, cache::Kernel::Write::kDone, now());
      });
    }
    if (added.is_move) state_.moves.end(added.place);
  }
}

// --- reclaiming --------------------------------------------------------------------------------

bool DiskWriter::reclaim() {
  // Records that are not loaded yet may be newer than loaded ones: segments stay unchanged until
  // then.
  if (state_.is_loading) return false;
  bool waits = false;
  for (int step = 0; step < kReclaimSteps; ++step) {
    free_reclaimed();
    if (reclaimed_ || (!state_.is_offline() && !can_write())) break;
    const cache::DiskReclaim done = reclaim_step();
    if (done.state == cache::DiskReclaim::State::kNothing) break;
    add_tombstone(done);
    waits |= put_moves(done);
    if (done.state == cache::DiskReclaim::State::kDone) {
      ENCORE_CHECK(!reclaimed_, "one segment is reclaimed at a time");
      reclaimed_ = {done.segment, done.sequence};
    }
  }
  // A small one is done immediately.
  if (waits) waits = drain(step_bytes_);
  free_reclaimed();
  return waits;
}

cache::DiskReclaim DiskWriter::reclaim_step() {
  std::vector<cache::DiskPlace> being_read = state_.readings.places();
  add_wanted(being_read);
  return state_.moves.decide([&] {
    return state_.common->kernel.use([&](cache::Kernel& kernel) {
      return kernel.reclaim_disk(state_.number, being_read, now());
    });
  });
}

void DiskWriter::add_wanted(std::vector<cache::DiskPlace>& places) {
  const std::vector<cache::Key> keys = state_.common->wanted.keys();
  if (keys.empty()) return;
  // Parts of the segment that is reclaimed next: for others there is time.
  const std::uint64_t oldest = state_.oldest_sequence();
  state_.common->kernel.use([&](cache::Kernel& kernel) {
    for (const cache::Key& key : keys) {
      const auto place = kernel.find_part(key, now());
      const bool is_next =
          place && place->disk == state_.number && state_.sequence(place->segment) == oldest;
      if (is_next) places.push_back(*place);
    }
  });
}

bool DiskWriter::put_moves(const cache::DiskReclaim& step) {
  bool waits = false;
  for (const cache::DiskRelocation& move : step.moves) {
    waits |= queue_.put(move.order, {.key = std::nullopt,
                                     .place = move.to,
                                     .turn = move.turn,
                                     .version = 0,
                                     .source = nullptr,
                                     .from = move.from});
  }
  return waits;
}

void DiskWriter::add_tombstone(const cache::DiskReclaim& step) {
  for (const cache::DiskPlace& place : step.buried) {
    if (const auto key = key_at(place)) state_.common->add_tombstone(*key, step.tombstone);
  }
}

std::optional<filter::Hash128> DiskWriter::key_at(const cache::DiskPlace& place) {
  const std::uint64_t sequence = state_.sequence(place.segment);
  const auto front = reader_.open({.place = place, .sequence = sequence, .key = std::nullopt});
  if (front) return (*front)->fields.key;
  // A record that cannot be read may have been shown all the same, out of memory or in an earlier
  // life: what is older of its key must not come back (docs/decisions/0440).
  const auto footer =
      read_footer(state_.file, state_.superblock, {.segment = place.segment, .sequence = sequence});
  if (!footer) return std::nullopt;
  const auto line = std::ranges::find(footer->lines, place.unit, &RecordLine::unit);
  return line == footer->lines.end() ? std::nullopt : std::optional(line->key);
}

void DiskWriter::free_reclaimed() {
  if (!reclaimed_) return;
  if (moves_added_ != 0) flush();
  const std::uint32_t segment = reclaimed_->segment;
  if (!state_.moves.empty() || state_.readings.has(segment)) return;
  if (!state_.is_offline()) {
    // The entries that the kernel has dropped may not have been written yet.
    if (!segments_.is_past(reclaimed_->sequence)) return;
    state_.set_sequence(segment, 0);
    // Tombstones are durable before the header goes: a start would find older records of their
    // keys.
    if (!log_.append_tombstones() || !segments_.erase(segment)) return;
  }
  state_.common->kernel.use(
      [&](cache::Kernel& kernel) { return kernel.free_segment(state_.number, segment, now()); });
  reclaimed_.reset();
  // On failure, more is kept.
  if (!state_.is_offline()) (void)log_.prune(segments_.sequence_min());
}

}  // namespace encore::disk

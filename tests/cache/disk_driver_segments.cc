// The driver's writes and reclaims.
#include "tests/cache/disk_driver.h"

namespace encore::cache::test {

bool Driver::write() {
  if (pending_.empty()) {
    return true;
  }
  const std::size_t which = random_() % pending_.size();
  const Platter::Record record = pending_[which];
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(which));
  return finish(record, random_() % 10 != 0);
}

bool Driver::finish(const Platter::Record& record, bool done) {
  const auto entry = model_.on_disk.find(record.name);
  const bool is_there = entry != model_.on_disk.end() && entry->second.place == record.line.place;
  if (done) {
    platter_.write(record);
  }
  if (is_there && done) {
    entry->second.written = true;
  } else if (is_there) {
    model_.drop_on_disk(record.name);
    count_loss(record.name, DiskLoss::kWriteFailed);
  }
  const DiskTombstone tombstone =
      kernel_->written(key_of(record.name.first), record.line.place,
                       done ? Kernel::Write::kDone : Kernel::Write::kFailed, now_);
  platter_.add_tombstone(record.name.first, record.name.second, tombstone);
  return static_cast<bool>(tombstone) == (is_there && !done && !is_part(record.name));
}

bool Driver::reclaim() {
  const auto disk = static_cast<std::uint16_t>(random_() % model_.logs.size());
  std::vector<DiskPlace> being_read;
  for (const auto& [name, place] : read_) {
    if (random_() % 16 == 0) {
      being_read.push_back(place);
    }
  }
  const DiskReclaim step = kernel_->reclaim_disk(disk, being_read, now_);
  if (step.state == DiskReclaim::State::kNothing) {
    return true;
  }
  SegmentLog& log = model_.logs[disk];
  if (log.segment(step.segment).state == SegmentLog::State::kSealed) {
    const bool is_beyond = log.oldest() && !log.is_newest(*log.oldest());
    if ((is_beyond ? log.oldest() : log.oldest_in_order()) != step.segment ||
        log.is_newest(step.segment)) {
      return false;
    }
    log.begin_reclaim(step.segment);
    moved_[disk] = 0;
  }
  return moves(step, being_read) && drops(disk, step) && frees(disk, step);
}

bool Driver::moves(const DiskReclaim& step, const std::vector<DiskPlace>& being_read) {
  for (const DiskRelocation& move : step.moves) {
    const auto entry = std::ranges::find_if(
        model_.on_disk, [&](const auto& e) { return e.second.place == move.from; });
    if (entry == model_.on_disk.end() || move.from.segment != step.segment) {
      return false;
    }
    const bool is_read = std::ranges::find(being_read, move.from) != being_read.end();
    Platter::Record copy = platter_.at(move.from);
    const auto placed =
        model_.logs[move.from.disk].place({.bytes = move.from.bytes,
                                           .names = copy.line.names,
                                           .names_bytes = names_bytes(copy.line.names),
                                           .why = WriteReason::kMove});
    if (!entry->second.written || !(is_read || is_warm(entry->first, entry->second)) || !placed ||
        placed->place != move.to || placed->turn != move.turn || placed->order != move.order) {
      return false;
    }
    moved_[move.from.disk] += move.from.bytes;
    ++seen.moves;
    ++counts_.moved;
    counts_.moved_bytes += move.from.bytes;
    seen.parts_moved += is_part(entry->first) ? 1U : 0U;
    model_.logs[move.from.disk].mark_dead(move.from);
    entry->second.place = move.to;
    entry->second.visited = false;
    platter_.open(move.turn);
    copy.line.place = move.to;
    copies_.push_back(copy);
  }
  return true;
}

bool Driver::is_warm(const Named& name, const DiskModel::OnDisk& entry) {
  return !is_part(name) && (entry.visited || model_.holds_key(name.first)) &&
         now_ < at(entry.fresh_until);
}

bool Driver::finds_no_place(std::uint16_t disk, const DiskPlace& place) const {
  const KernelOptions& options = model_.options();
  SegmentLog log = model_.logs[disk];
  const std::uint64_t cap = log.segment_bytes() * options.disk_rules.reinsert_percent / 100 *
                            (shard_.at(disk) + 1U) / options.shards;
  return moved_.at(disk) + place.bytes > cap ||
         model_.on_disk.size() * kDiskEntryBytes > options.capacity_bytes / kDiskIndexShare ||
         !log.place({.bytes = place.bytes, .why = WriteReason::kMove});
}

bool Driver::drop(const Named& name, const DiskReclaim& step) {
  const DiskModel::OnDisk& record = model_.on_disk.at(name);
  const bool has_tombstone = std::ranges::find(step.buried, record.place) != step.buried.end();
  if (has_tombstone) {
    platter_.add_tombstone(name.first, name.second, step.tombstone);
  }
  // With names it takes more of the footer.
  const bool is_worth = record.written && is_warm(name, record) && platter_.holds(record.place) &&
                        platter_.at(record.place).line.names == 0;
  const bool had_to = !is_worth || finds_no_place(record.place.disk, record.place);
  seen.parts_dropped += is_part(name) ? 1U : 0U;
  return had_to && !(has_tombstone && is_part(name));
}

bool Driver::drops(std::uint16_t disk, const DiskReclaim& step) {
  const std::uint32_t shards = model_.options().shards;
  std::vector<Named> dropped;
  bool had_to = true;
  for (const auto& [name, record] : model_.on_disk) {
    if (record.place.disk == disk && record.place.segment == step.segment &&
        filter::shard_of(key_of(name.first).hash, shards) == shard_[disk]) {
      dropped.push_back(name);
      had_to = had_to && drop(name, step);
    }
  }
  for (const Named& name : dropped) {
    count_loss(name, DiskLoss::kDropped);
    if (!is_part(name)) {
      ++counts_.settled;
      counts_.settled_visited += model_.on_disk.at(name).was_visited ? 1U : 0U;
    }
    model_.drop_on_disk(name);
  }
  seen.drops += dropped.size();
  shard_[disk] = (shard_[disk] + 1) % shards;
  return had_to && dropped.size() == step.dropped;
}

bool Driver::frees(std::uint16_t disk, const DiskReclaim& step) {
  if (step.state != DiskReclaim::State::kDone) {
    return moved_[disk] <= model_.logs[disk].segment_bytes() || !copies_.empty();
  }
  ++counts_.segments_reclaimed;
  if (random_() % 4 == 0 && !recovers()) {
    return false;  // a crash between what was dropped and the header's end
  }
  for (const Platter::Record& copy : copies_) {
    if (copy.line.place.disk == disk) {
      if (!finish(copy, random_() % 20 != 0)) {
        return false;
      }
    }
  }
  std::erase_if(copies_, [&](const auto& copy) { return copy.line.place.disk == disk; });
  std::erase_if(pending_, [&](const auto& record) {
    return record.line.place.disk == disk && record.line.place.segment == step.segment;
  });
  std::erase_if(read_, [&](const auto& read) {
    return read.second.disk == disk && read.second.segment == step.segment;
  });
  platter_.erase_header(disk, step.segment);
  return kernel_->free_segment(disk, step.segment, now_) &&
         model_.logs[disk].end_reclaim(step.segment) &&
         !kernel_->free_segment(disk, step.segment, now_);
}

bool Driver::resize() {
  const auto disk = static_cast<std::uint16_t>(random_() % model_.logs.size());
  const auto segments = static_cast<std::uint32_t>(5 + random_() % 8);
  kernel_->resize_disk(disk, segments, now_);
  model_.logs[disk].resize(segments);
  return true;
}

}  // namespace encore::cache::test

#include "proxy/disk/purge_log.h"

#include <algorithm>
#include <functional>
#include <string>

#include "proxy/disk/purge_merger.h"

namespace encore::disk {

Result<void> PurgeLog::make() {
  epoch_ = 1;
  end_ = 0;
  FrameBuilder frame;
  const auto bytes = frame.seal({.salt = purge_salt(superblock_.uuid, epoch_),
                                 .epoch = epoch_,
                                 .offset = 0,
                                 .ends_snapshot = true});
  for (std::size_t copy = 0; copy < kCopies; ++copy) {
    if (auto written = file_.write(bytes, place(copy, 0)); !written) return written;
  }
  if (auto synced = file_.sync(); !synced) return synced;
  end_ = bytes.size();
  is_broken_ = false;
  return {};
}

Result<std::optional<PurgeLog::FoundFrame>> PurgeLog::find(std::size_t copy, std::uint64_t offset,
                                                           std::uint64_t epoch,
                                                           AlignedBuffer& memory) {
  if (offset + kPageBytes > superblock_.purge_bytes) return std::nullopt;
  const Page first(memory.first(kPageBytes));
  if (auto got = file_.read(first, place(copy, offset)); !got) {
    return std::unexpected(got.error());
  }
  const auto head = frame_head(first);
  if (!head || head->epoch != epoch || head->bytes > superblock_.purge_bytes - offset) {
    return std::nullopt;
  }
  const auto bytes = memory.first(head->bytes);
  if (head->bytes > kPageBytes) {
    if (auto got = file_.read(bytes.subspan(kPageBytes), place(copy, offset) + kPageBytes); !got) {
      return std::unexpected(got.error());
    }
  }
  const auto frame = decode_frame(bytes, purge_salt(superblock_.uuid, epoch), offset);
  if (!frame) return std::nullopt;
  return FoundFrame{*frame, bytes};
}

Result<std::optional<PurgeLog::FoundFrame>> PurgeLog::find_in_either(std::uint64_t offset,
                                                                     std::uint64_t epoch) {
  auto first = find(0, offset, epoch, memory_[0]);
  if (first && *first) return first;
  auto second = find(1, offset, epoch, memory_[1]);
  // The end is at bytes that can be read from one copy and are not a frame.
  return second ? second : first;
}

std::uint64_t PurgeLog::first_epoch(std::size_t copy) {
  const Page page(memory_[copy].first(kPageBytes));
  if (!file_.read(page, place(copy, 0))) return 0;
  const auto head = frame_head(page);
  return head && head->epoch <= kNumberMax ? head->epoch : 0;
}

Result<std::optional<std::uint64_t>> PurgeLog::walk(std::uint64_t epoch, const VisitPurge& visit) {
  bool is_whole = false;
  std::uint64_t end = 0;
  for (;;) {
    const auto found = find_in_either(end, epoch);
    if (!found) return std::unexpected(found.error());
    if (!*found) break;
    for_each_purge((*found)->frame.entries, visit);
    is_whole = is_whole || (*found)->frame.ends_snapshot;
    end += (*found)->bytes.size();
  }
  if (!is_whole) return std::nullopt;
  return end;
}

Result<void> PurgeLog::load(const VisitPurge& visit) {
  std::array epochs = {first_epoch(0), first_epoch(1)};
  std::ranges::sort(epochs, std::greater());
  for (const std::uint64_t epoch : epochs) {
    if (epoch == 0) continue;
    // Twice, so that an incomplete epoch reports nothing.
    const auto end = walk(epoch, [](const Purge&) {});
    if (!end) return std::unexpected(end.error());
    if (!*end) continue;
    epoch_ = epoch;
    end_ = **end;
    // Bytes that a crash has left behind its end must not be taken for frames added now.
    is_broken_ = true;
    const auto again = walk(epoch, [&](const Purge& purge) {
      count(purge);
      visit(purge);
    });
    if (!again) return std::unexpected(again.error());
    // If the disk is only inspected, its owner may have added some meanwhile.
    if (!*again || **again < end_) continue;
    end_ = **again;
    return {};
  }
  return fail("disk " + file_.path() +
              ": what was purged cannot be read, and nothing on it may be used without that; "
              "empty it with --clear-disk");
}

void PurgeLog::count(const Purge& purge) {
  ++entries_;
  ++entries_by_sequence_[purge.sequence];
  version_max_ = std::max(version_max_, purge.version);
}

Result<void> PurgeLog::append(std::span<const Purge> purges) {
  const std::uint64_t bytes = frames_bytes(purges);
  const bool is_full = end_ + bytes > superblock_.purge_bytes;
  if (is_broken_ || is_full) {
    if (auto mended = rewrite(); !mended) return mended;
  }
  // Rewriting must free enough for the next time, too. Else one purge stands for all
  // (docs/decisions/0294).
  const std::uint64_t room = is_full ? superblock_.purge_bytes / 4 * 3 : superblock_.purge_bytes;
  if (end_ + bytes > room) {
    const Purge all = all_before(purges);
    if (auto written = rewrite(&all); !written) return written;
    ++overflows_;
    return {};
  }
  auto appended = append_frames(purges);
  if (!appended) is_broken_ = true;
  return appended;
}

Purge PurgeLog::all_before(std::span<const Purge> purges) const {
  Purge all;
  all.kind = PurgeKind::kPrefix;  // each key begins with nothing
  all.version = version_max_;
  if (!entries_by_sequence_.empty()) all.sequence = entries_by_sequence_.rbegin()->first;
  for (const Purge& purge : purges) {
    all.version = std::max(all.version, purge.version);
    all.sequence = std::max(all.sequence, purge.sequence);
  }
  return all;
}

Result<void> PurgeLog::append_frames(std::span<const Purge> purges) {
  FrameBuilder frame;
  std::uint64_t end = end_;
  for (auto rest = purges; !rest.empty();) {
    const std::size_t fitting = frame_entries(rest);
    for (const Purge& purge : rest.first(fitting)) frame.add(purge);
    rest = rest.subspan(fitting);
    const auto bytes = frame.seal({.salt = purge_salt(superblock_.uuid, epoch_),
                                   .epoch = epoch_,
                                   .offset = end,
                                   .ends_snapshot = false});
    for (std::size_t copy = 0; copy < kCopies; ++copy) {
      if (auto written = file_.write(bytes, place(copy, end)); !written) return written;
    }
    end += bytes.size();
  }
  // One sync for both copies: a crash before it may lose them, and nobody was answered yet.
  if (auto synced = file_.sync(); !synced) return synced;
  end_ = end;
  for (const Purge& purge : purges) count(purge);
  return {};
}

Result<void> PurgeLog::prune(std::uint64_t sequence_min) {
  sequence_min_ = std::max(sequence_min_, sequence_min);
  std::uint64_t forgotten = 0;
  for (const auto& [sequence, entries] : entries_by_sequence_) {
    if (sequence < sequence_min_) forgotten += entries;
  }
  // A rewrite costs what it keeps, so it waits until it keeps no more than it drops.
  return forgotten == 0 || 2 * forgotten < entries_ ? Result<void>() : rewrite();
}

Result<void> PurgeLog::heal() {
  bool was_whole = true;
  for (std::uint64_t at = 0; at < end_;) {
    std::array<std::optional<FoundFrame>, kCopies> found;
    for (std::size_t copy = 0; copy < kCopies; ++copy) {
      // One that cannot be read is written anew, as one that is damaged.
      if (auto got = find(copy, at, epoch_, memory_[copy])) found[copy] = *got;
    }
    if (!found[0] && !found[1]) {
      return fail("disk " + file_.path() + ": both copies of the purge log are damaged at " +
                  std::to_string(at));
    }
    const std::size_t good = found[0] ? 0 : 1;
    const auto bytes = found[good]->bytes;
    if (!found[1 - good]) {
      was_whole = false;
      if (auto written = file_.write(bytes, place(1 - good, at)); !written) return written;
    }
    at += bytes.size();
  }
  return was_whole ? Result<void>() : file_.sync();
}

std::vector<PurgeLog::Gap> PurgeLog::gaps() {
  std::vector<Gap> gaps;
  for (std::uint64_t at = 0; at < end_;) {
    std::uint64_t bytes = 0;
    std::vector<std::size_t> lacking;
    for (std::size_t copy = 0; copy < kCopies; ++copy) {
      const auto found = find(copy, at, epoch_, memory_[copy]);
      if (found && *found) {
        bytes = (*found)->bytes.size();
      } else {
        lacking.push_back(copy);
      }
    }
    for (const std::size_t copy : lacking) {
      gaps.push_back({place(copy, at), is_unwritten(copy, at)});
    }
    // A writer has taken it away meanwhile.
    if (bytes == 0) break;
    at += bytes;
  }
  return gaps;
}

bool PurgeLog::is_unwritten(std::size_t copy, std::uint64_t offset) {
  AlignedBuffer& memory = memory_[copy];
  const Page page(memory.first(kPageBytes));
  if (!file_.read(page, place(copy, offset))) return false;
  if (std::ranges::all_of(page, [](auto byte) { return byte == std::byte{0}; })) return true;
  const auto head = frame_head(page);
  if (!head || head->epoch == epoch_) return false;
  const auto before = find(copy, offset, head->epoch, memory);
  return before && *before;
}

// The contents of the first copy for an epoch.
class PurgeLog::Snapshot {
 public:
  // `log` is borrowed.
  Snapshot(PurgeLog& log, std::uint64_t epoch) : log_(log), epoch_(epoch) {}

  void add(const Purge& purge) {
    if (frame_.add(purge)) return;
    write(false);
    frame_.add(purge);
  }
  // How far it goes, durable.
  Result<std::uint64_t> finish() {
    write(true);
    if (written_) written_ = log_.file_.sync();
    if (!written_) return std::unexpected(written_.error());
    return end_;
  }

 private:
  void write(bool ends_snapshot) {
    const auto bytes = frame_.seal({.salt = purge_salt(log_.superblock_.uuid, epoch_),
                                    .epoch = epoch_,
                                    .offset = end_,
                                    .ends_snapshot = ends_snapshot});
    if (written_ && end_ + bytes.size() > log_.superblock_.purge_bytes) {
      written_ = fail("disk " + log_.file_.path() + ": the purge log is full");
    }
    if (written_) written_ = log_.file_.write(bytes, log_.place(0, end_));
    end_ += bytes.size();
  }

  PurgeLog& log_;
  const std::uint64_t epoch_;
  FrameBuilder frame_;
  std::uint64_t end_ = 0;
  Result<void> written_;
};

Result<void> PurgeLog::visit_second(const VisitPurge& visit) {
  for (std::uint64_t at = 0; at < end_;) {
    const auto found = find(1, at, epoch_, memory_[1]);
    if (!found) return std::unexpected(found.error());
    if (!*found) return fail("disk " + file_.path() + ": the purge log changed while it was read");
    for_each_purge((*found)->frame.entries, visit);
    at += (*found)->bytes.size();
  }
  return {};
}

Result<std::uint64_t> PurgeLog::write_kept(std::uint64_t epoch) {
  PurgeMerger merger(kMergedMax);
  const auto is_kept = [this](const Purge& purge) { return purge.sequence >= sequence_min_; };
  auto read = visit_second([&](const Purge& purge) {
    if (is_kept(purge)) merger.show(purge);
  });
  if (!read) return std::unexpected(read.error());
  Snapshot snapshot(*this, epoch);
  read = visit_second([&](const Purge& purge) {
    if (!is_kept(purge)) return;
    if (const auto kept = merger.take(purge)) snapshot.add(*kept);
  });
  if (!read) return std::unexpected(read.error());
  return snapshot.finish();
}

Result<std::uint64_t> PurgeLog::write_only(std::uint64_t epoch, const Purge& purge) {
  Snapshot snapshot(*this, epoch);
  snapshot.add(purge);
  return snapshot.finish();
}

Result<void> PurgeLog::rewrite(const Purge* only) {
  is_broken_ = true;
  // A turn that is not durable may come back in a crash, and what was purged with it.
  if (auto synced = file_.sync(); !synced) return synced;
  if (auto healed = heal(); !healed) return healed;
  const auto end = only != nullptr ? write_only(epoch_ + 1, *only) : write_kept(epoch_ + 1);
  if (!end) return std::unexpected(end.error());
  // From here on the first copy counts; what is left to do is to heal the second.
  ++epoch_;
  end_ = *end;
  entries_ = 0;
  entries_by_sequence_.clear();
  for (std::uint64_t at = 0; at < end_;) {
    const auto found = find(0, at, epoch_, memory_[0]);
    if (!found) return std::unexpected(found.error());
    if (!*found) return fail("disk " + file_.path() + ": the purge log was not written as told");
    for_each_purge((*found)->frame.entries, [&](const Purge& purge) { count(purge); });
    at += (*found)->bytes.size();
  }
  if (auto healed = heal(); !healed) return healed;
  is_broken_ = false;
  return {};
}

}  // namespace encore::disk

// A replay's disk: its writes, their fates, and its hits.
#include <tuple>

#include "cache/disk_layout.h"
#include "cache/disk_parts.h"
#include "sim/replay/replay_run.h"

namespace encore::sim {
namespace {

// Bytes of a record on disk: a header, the checksums of its blocks, and themselves.
std::uint64_t record_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kHeader = 128;
  constexpr std::uint64_t kBlock = 64ULL * 1024;
  constexpr std::uint64_t kChecksum = 8;
  return kHeader + bytes + (bytes + kBlock - 1) / kBlock * kChecksum;
}

}  // namespace

bool ReplayRun::is_for_disk_only(std::uint64_t charge_bytes) const {
  const cache::KernelOptions& kernel = options_.kernel;
  return options_.has_disk() &&
         (kernel.max_object_bytes == 0 || charge_bytes <= kernel.max_object_bytes) &&
         charge_bytes <= kernel_->disk_body_max() &&
         charge_bytes + kernel.entry_overhead_bytes >
             cache::effective_max_object(cache::reload_options(kernel));
}

std::uint64_t ReplayRun::write_body(const ReplayRequest& request, const cache::Key& key,
                                    const cache::Stored& stored) {
  const std::uint64_t bytes = charge_of(request);
  if (bytes <= cache::kWholeBodyMax &&
      cache::fits_empty_segment(record_bytes(bytes), 0,
                                options_.kernel.disks.front().segment_bytes)) {
    bodies_.erase(request.object);
    return record_bytes(bytes);
  }
  if (bytes > kernel_->disk_body_max()) {
    return 0;
  }
  Body& body = bodies_[request.object];
  body = {.number = ++last_body_, .parts = cache::part_count(bytes)};
  for (std::uint64_t i = 0; i < body.parts; ++i) {
    const cache::Key part = cache::part_key(key.hash, body.number, i);
    const cache::DiskDecision decision =
        kernel_->place_part(part,
                            {.bytes = record_bytes(cache::part_bytes(bytes, i)),
                             .useless_from = std::max(stored.fresh_until, stored.keep_until)},
                            now_);
    if (!write(part, decision, cache::part_bytes(bytes, i))) {
      return 0;
    }
  }
  return record_bytes(0);
}

void ReplayRun::look_for_parts(const ReplayRequest& request, const cache::Key& key,
                               const cache::DiskView& on_disk, cache::LookupResult& found) {
  const auto body = bodies_.find(request.object);
  if (body == bodies_.end()) {
    return;
  }
  for (std::uint64_t i = 0; i < body->second.parts; ++i) {
    if (!kernel_->find_part(cache::part_key(key.hash, body->second.number, i), now_)) {
      kernel_->lost(key, on_disk.place, now_);
      counts_.disk_objects_broken += has_ended_warmup() ? 1U : 0U;
      found = {};
      return;
    }
  }
}

bool ReplayRun::write(const cache::Key& key, const cache::DiskDecision& decision,
                      std::uint64_t body_bytes) {
  const bool is_placed = decision.outcome == cache::DiskOutcome::kPlaced;
  if (is_placed) {
    space_.placed(decision.place, body_bytes);
    kernel_->written(key, decision.place, cache::Kernel::Write::kDone, now_);
  }
  counts_.disk_bytes_admitted += has_ended_warmup() ? decision.place.bytes : 0;
  // Nothing else makes a segment, or room in the index, scarce.
  if (decision.turn.sequence != 0 || !is_placed) {
    reclaim();
  }
  return is_placed;
}

void ReplayRun::reclaim() {
  const bool counts = has_ended_warmup();
  for (std::uint16_t disk = 0; disk < kernel_->disks(); ++disk) {
    cache::DiskReclaim step;
    do {
      step = kernel_->reclaim_disk(disk, {}, now_);
      for (const cache::DiskRelocation& move : step.moves) {
        space_.moved(move.from, move.to);
      }
      if (step.state == cache::DiskReclaim::State::kDone) {
        kernel_->free_segment(disk, step.segment, now_);
        space_.freed(disk, step.segment);
      }
      if (counts) {
        counts_.disk_objects_dropped += step.dropped - step.parts_dropped;
        counts_.disk_parts_dropped += step.parts_dropped;
        for (const cache::DiskRelocation& move : step.moves) {
          counts_.disk_bytes_moved += move.to.bytes;
        }
      }
    } while (step.state != cache::DiskReclaim::State::kNothing);
  }
}

void ReplayRun::promote(const ReplayRequest& request, const cache::Key& key,
                        const cache::LookupResult& found, const cache::DiskView& view) {
  cache::Stored stored = stored_as(request, request.ttl_seconds);
  stored.fresh_until = found.fresh_until;
  stored.from_disk = view.place;
  // Without room in memory it stays where it is.
  std::ignore = kernel_->commit(key, stored, 0, now_);
}

}  // namespace encore::sim

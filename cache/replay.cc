#include "cache/replay.h"

#include <bit>
#include <tuple>
#include <utility>

#include "cache/disk_codec.h"

namespace encore::cache {
namespace {

// In a replay an entry's payload is its variant, so a selection can be repeated.
class SelectVariant final : public Selector {
 public:
  explicit SelectVariant(const Event& event)
      : variant_(event.variant),
        place_(event.place),
        any_(event.outcome != static_cast<std::uint8_t>(LookupState::kMiss)),
        on_disk_((event.disk_flags & kFoundOnDisk) != 0) {}
  bool matches(Payload payload) override { return any_ && !on_disk_ && payload == variant_; }
  bool matches_disk(const DiskView& view) override { return on_disk_ && view.place == place_; }

 private:
  std::uint64_t variant_;
  DiskPlace place_;
  bool any_;
  bool on_disk_;
};

struct Overtaken final : public InvalidationCheck {
  bool is_overtaken() const override { return true; }
};
const Overtaken kWasOvertaken;

Stored stored_of(const Event& event) {
  return {
      .variant = event.variant,
      .charge_bytes = event.charge_bytes,
      .fresh_until = event.fresh_until,
      .keep_until = event.keep_until,
      .payload = event.variant,
      .disk_bytes = event.disk_bytes,
      .disk_names = event.names,
      .disk_queue_full = (event.disk_flags & kQueueFull) != 0,
      .disk_only = (event.disk_flags & kDiskOnly) != 0,
      .waits = (event.disk_flags & kOnProbation) != 0,
      .from_disk = (event.disk_flags & kFromDisk) != 0 ? std::optional(event.place) : std::nullopt,
      .invalidation_check = (event.disk_flags & kOvertaken) != 0 ? &kWasOvertaken : nullptr};
}

std::string_view outcome_name(const Event& event) {
  const std::uint8_t outcome = event.outcome;
  switch (event.kind) {
    case EventKind::kLookup:
      return to_string(static_cast<LookupState>(outcome));
    case EventKind::kAdmit:
      return outcome < kAdmitReasonCount ? to_string(static_cast<AdmitReason>(outcome)) : "?";
    case EventKind::kReserve:
      return outcome == kReserveNextShard   ? "next-shard"
             : outcome == kReserveSameShard ? "same-shard"
             : outcome == kReserveGone      ? "gone"
                                            : to_string(static_cast<ReserveOutcome>(outcome));
    case EventKind::kCommit:
      return to_string(static_cast<CommitOutcome>(outcome));
    case EventKind::kFreshen:
      return outcome == kFreshenNeedsRoom ? "needs-room"
                                          : to_string(static_cast<FreshenOutcome>(outcome));
    case EventKind::kPartFound:
      return outcome == kPartIsWritten ? "written" : outcome == 0 ? "absent" : "not-written";
    case EventKind::kGrow:
      return outcome == kGrown ? "grown" : "absent";
    default:
      return "done";
  }
}

std::string figures(const Event& event) {
  std::string text(outcome_name(event));
  if (event.variant != 0) {
    text += ", variant " + std::to_string(event.variant);
  }
  if (event.kind == EventKind::kAdopt) {
    text += ", " + std::to_string(event.requests) + " generations";
  }
  if (event.disk_outcome != 0) {
    text +=
        ", for the disk " + std::string(to_string(static_cast<DiskOutcome>(event.disk_outcome)));
  }
  if (event.place != DiskPlace{}) {
    text += ", disk " + std::to_string(event.place.disk) + " segment " +
            std::to_string(event.place.segment) + " offset " + std::to_string(event.place.offset());
  }
  if (event.version != 0) {
    text += ", version " + std::to_string(event.version);
  }
  if (event.disk_entries != 0) {
    text += ", " + std::to_string(event.disk_entries) + " entries on disk";
  }
  if (event.removed != 0 || event.freed_bytes != 0) {
    text += ", " + std::to_string(event.removed) + " removed with " +
            std::to_string(event.freed_bytes) + " bytes";
  }
  return text;
}

}  // namespace

// Records the events of the replaying kernel.
class Replay::Capture final : public Observer {
 public:
  void record(const Event& event) override {
    event_ = event;
    text_ = event.text;
    event_.text = text_;
  }
  void clear() { event_ = {}; }
  const Event& event() const { return event_; }

 private:
  Event event_;
  std::string text_;
};

Replay::Replay() : capture_(std::make_unique<Capture>()) {}
Replay::~Replay() = default;

Result<std::unique_ptr<Replay>> Replay::create(const JournalHead& head,
                                               const filter::Seed& identity, FindState find_state) {
  const bool has_seed = identity != filter::Seed{};
  if ((has_seed || !head.identity_filter) &&
      filter::fingerprint(identity) != head.seed_fingerprint) {
    return fail("the journal was written under the seed with fingerprint " + head.seed_fingerprint +
                ", the seed here has " + filter::fingerprint(identity));
  }
  KernelOptions options = head.options;
  options.identity_seed = identity;
  options.admission.filter.seed = identity;
  options.concurrent = false;
  std::unique_ptr<Replay> replay(new Replay);
  auto kernel =
      Kernel::create(options, {.owner = nullptr, .observer = replay->capture_.get()}, head.started);
  if (!kernel) {
    return std::unexpected(kernel.error());
  }
  replay->kernel_ = std::move(*kernel);
  replay->identity_ = identity;
  replay->find_state_ = std::move(find_state);
  return replay;
}

Result<std::optional<Replay::Difference>> Replay::apply(const Event& event) {
  if (event.shard >= kernel_->shards()) {
    return fail("record " + std::to_string(event.sequence) + " names shard " +
                std::to_string(event.shard) + " of " + std::to_string(kernel_->shards()));
  }
  capture_->clear();
  if (auto done = dispatch(event); !done) {
    return fail("record " + std::to_string(event.sequence) + " (" +
                std::string(to_string(event.kind)) + "): " + done.error().message);
  }
  if (capture_->event() == event) {
    return std::nullopt;
  }
  return Difference{event, capture_->event()};
}

Result<void> Replay::dispatch(const Event& event) {
  const Key key{event.key, event.text};
  switch (event.kind) {
    case EventKind::kLookup: {
      SelectVariant selector(event);
      kernel_->lookup(key, event.now, selector);
      return {};
    }
    case EventKind::kAdmit:
      kernel_->admit(key,
                     {.variant = event.variant,
                      .requests = event.requests,
                      .size_bytes = event.charge_bytes,
                      .disk_only = (event.disk_flags & kDiskOnly) != 0,
                      .hinted = (event.disk_flags & kHinted) != 0,
                      .rule = AdmissionRule::decoded(event.reserved_bytes)},
                     event.now);
      return {};
    case EventKind::kReserve:
      if ((event.requests & kReserveWaiting) != 0 && kernel_->disks() == 0) {
        return fail("what waits leaves, where there are no disks");
      }
      kernel_->reserve_step(
          key,
          {.shard = event.shard,
           .bytes = event.charge_bytes,
           .last = (event.requests & kReserveLast) != 0,
           .spares = (event.requests & kReserveSpares) != 0,
           .from_waiting = (event.requests & kReserveWaiting) != 0,
           .grows =
               (event.requests & kReserveGrows) != 0 ? std::optional(event.variant) : std::nullopt},
          event.now);
      return {};
    case EventKind::kAbort:
      kernel_->abort(key, event.charge_bytes, event.now);
      return {};
    case EventKind::kCommit: {
      DiskDecision decision;
      kernel_->commit_step(key, stored_of(event), event.reserved_bytes, event.now, decision);
    }
      return {};
    case EventKind::kFreshen:
      kernel_->freshen_step(key, stored_of(event), event.reserved_bytes, event.now);
      return {};
    default:
      return dispatch_rare(event);
  }
}

Result<void> Replay::dispatch_rare(const Event& event) {
  const Key key{event.key, event.text};
  switch (event.kind) {
    case EventKind::kInvalidate:
      kernel_->invalidate(key, event.now);
      return {};
    case EventKind::kRemove:
      kernel_->remove(key, event.variant, event.now);
      return {};
    case EventKind::kMarkStale:
      kernel_->mark_stale(key, event.now);
      return {};
    case EventKind::kPurge:
    case EventKind::kPurgeSoftly:
      if (event.place != DiskPlace{}) {
        return dispatch_disk(event);
      }
      kernel_->purge_step(event);
      return {};
    case EventKind::kReclaim:
      kernel_->reclaim_step(event.shard, event.requests, event.now);
      return {};
    case EventKind::kMakeRoom:
      kernel_->make_room_step(
          event.shard, {.bytes = event.charge_bytes, .victims_max = event.requests}, event.now);
      return {};
    case EventKind::kReload: {
      auto options = decode_reload(event.text, identity_);
      if (!options) {
        return std::unexpected(options.error());
      }
      if (auto accepted = check_options(*options); !accepted) {
        return accepted;
      }
      kernel_->reload_step(*options, event.now);
      return {};
    }
    case EventKind::kReloadShard:
      // A refusal is the record's outcome, which is compared.
      std::ignore = kernel_->reload_shard_step(event.shard, event.now);
      return {};
    case EventKind::kRestore: {
      const std::string state = find_state_ ? find_state_(event.removed_digest) : std::string();
      if (state_checksum(state) != event.removed_digest) {
        return fail("the saved state that it restored is not at hand");
      }
      return kernel_->restore_step(event.shard, state, event.now);
    }
    case EventKind::kAdopt:
      return adopt(event);
    case EventKind::kGrow:
      grow(event);
      return {};
    default:
      return dispatch_disk(event);
  }
}

// The journal does not know the payload's owner, but whether it was the entry's.
void Replay::grow(const Event& event) {
  std::optional<Payload> payload;
  if (event.outcome == kGrown) payload = event.variant;
  kernel_->grow_step({event.key, {}}, event.variant, payload, event.reserved_bytes, event.now);
}

Result<void> Replay::dispatch_disk(const Event& event) {
  const std::uint16_t disk = event.place.disk;
  if (disk >= kernel_->disks()) {
    return fail("it names disk " + std::to_string(disk) + " of " +
                std::to_string(kernel_->disks()));
  }
  const Key key{event.key, {}};
  switch (event.kind) {
    case EventKind::kPurge:
    case EventKind::kPurgeSoftly:
      kernel_->purge_step(event);
      return {};
    case EventKind::kWritten:
      kernel_->written(key, event.place,
                       event.outcome == 0 ? Kernel::Write::kDone : Kernel::Write::kFailed,
                       event.now);
      return {};
    case EventKind::kLost:
      kernel_->lost(key, event.place, event.now);
      return {};
    case EventKind::kFreeSegment:
      kernel_->free_segment(disk, event.place.segment, event.now);
      return {};
    case EventKind::kLoaded:
      kernel_->loaded(disk, event.now);
      return {};
    case EventKind::kOffline:
      kernel_->take_offline(disk, event.now);
      return {};
    case EventKind::kResize:
      if (event.requests == 0 || event.requests > kSegmentsMax) {
        return fail("a disk of " + std::to_string(event.requests) + " segments");
      }
      kernel_->resize_disk(disk, event.requests, event.now);
      return {};
    case EventKind::kNames:
      kernel_->intern(event.text, event.now);
      return {};
    case EventKind::kFollow: {
      const ProbationRule rule{.window = std::bit_cast<double>(event.variant),
                               .all = event.outcome != 0,
                               .chance = std::bit_cast<double>(event.reserved_bytes)};
      return kernel_->follow(rule, event.now);
    }
    case EventKind::kLeave:
      kernel_->leave_step(
          event.shard, event.outcome == 0 ? Kernel::Leave::kWhoseTimeIsOver : Kernel::Leave::kAll,
          event.now);
      return {};
    case EventKind::kPurgeRule:
      kernel_->purge_rule(event.now);
      return {};
    case EventKind::kPart:
      kernel_->place_part_step(key,
                               {.bytes = event.disk_bytes,
                                .queue_full = (event.disk_flags & kQueueFull) != 0,
                                .useless_from = event.keep_until},
                               event.reserved_bytes, event.now);
      return {};
    case EventKind::kPartFound:
      // The result is the record's outcome, which is compared.
      std::ignore = kernel_->find_part(key, event.now);
      return {};
    default:
      return dispatch_given(event);
  }
}

// The text has the arguments of the kernel's caller.
Result<void> Replay::dispatch_given(const Event& event) {
  const std::uint16_t disk = event.place.disk;
  switch (event.kind) {
    case EventKind::kDiskReclaim: {
      const auto places = decode_places(event.text);
      if (!places) {
        return std::unexpected(places.error());
      }
      kernel_->reclaim_disk_step({disk, event.shard, *places}, event.now);
      return {};
    }
    case EventKind::kAttach: {
      const auto sequences = decode_sequences(event.text);
      if (!sequences) {
        return std::unexpected(sequences.error());
      }
      kernel_->attach(disk, *sequences, event.version, event.now);
      return {};
    }
    case EventKind::kLoad: {
      const auto records = decode_records(event.text);
      if (!records) {
        return std::unexpected(records.error());
      }
      for (const DiskRecord& record : *records) {
        if (record.place.disk >= kernel_->disks()) {
          return fail("a record of disk " + std::to_string(record.place.disk));
        }
      }
      kernel_->load_step({event.shard, event.reserved_bytes}, *records, event.now);
      return {};
    }
    default:
      return fail("a kind that is not replayed");
  }
}

Result<void> Replay::adopt(const Event& event) {
  if (adoptable_.memory == nullptr || adoptable_.checksum != event.removed_digest) {
    const std::string state = find_state_ ? find_state_(event.removed_digest) : std::string();
    if (state_checksum(state) != event.removed_digest) {
      return fail("the memory that it adopted is not at hand, expected in " +
                  adopted_path("DECISIONS", event.removed_digest));
    }
    auto adoptable = read_adoptable(state);
    if (!adoptable) {
      return std::unexpected(adoptable.error());
    }
    adoptable_ = std::move(*adoptable);
  }
  // As with a reload.
  std::ignore = kernel_->adopt_step(event.shard, adoptable_, event.now);
  return {};
}

std::string describe(const Replay::Difference& difference) {
  const Event& recorded = difference.recorded;
  std::string text(to_string(recorded.kind));
  text += ' ' + std::to_string(recorded.sequence) + " of shard " + std::to_string(recorded.shard) +
          ": recorded " + figures(recorded) + "; replayed ";
  if (difference.replayed.sequence == 0) {
    return text + "nothing";
  }
  text += figures(difference.replayed);
  if (difference.replayed.sequence != recorded.sequence) {
    text += " as record " + std::to_string(difference.replayed.sequence);
  }
  return text;
}

}  // namespace encore::cache

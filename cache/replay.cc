#include "cache/replay.h"

#include <tuple>
#include <utility>

#include "cache/saved_admission.h"

namespace encore::cache {
namespace {

// In a replay an entry's payload is its variant, so a selection can be repeated.
class SelectVariant final : public Selector {
 public:
  explicit SelectVariant(const Event& event)
      : variant_(event.variant),
        any_(event.outcome != static_cast<std::uint8_t>(LookupState::kMiss)) {}
  bool matches(Payload payload) override { return any_ && payload == variant_; }

 private:
  std::uint64_t variant_;
  bool any_;
};

Stored stored_of(const Event& event) {
  return {.variant = event.variant,
          .charge_bytes = event.charge_bytes,
          .fresh_until = event.fresh_until,
          .keep_until = event.keep_until,
          .payload = event.variant};
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
                                            : to_string(static_cast<ReserveOutcome>(outcome));
    case EventKind::kCommit:
      return to_string(static_cast<CommitOutcome>(outcome));
    case EventKind::kFreshen:
      return outcome == kFreshenNeedsRoom ? "needs-room"
                                          : to_string(static_cast<FreshenOutcome>(outcome));
    default:
      return "done";
  }
}

std::string figures(const Event& event) {
  std::string text(outcome_name(event));
  if (event.variant != 0) {
    text += ", variant " + std::to_string(event.variant);
  }
  if (event.removed != 0 || event.freed_bytes != 0) {
    text += ", " + std::to_string(event.removed) + " removed with " +
            std::to_string(event.freed_bytes) + " bytes";
  }
  return text;
}

}  // namespace

// What the replaying kernel says of itself.
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
      kernel_->admit(
          key,
          {.variant = event.variant, .requests = event.requests, .size_bytes = event.charge_bytes},
          event.now);
      return {};
    case EventKind::kReserve:
      kernel_->reserve_step(
          key, {.shard = event.shard, .bytes = event.charge_bytes, .last = event.requests != 0},
          event.now);
      return {};
    case EventKind::kAbort:
      kernel_->abort(key, event.charge_bytes, event.now);
      return {};
    case EventKind::kCommit:
      kernel_->commit_step(key, stored_of(event), event.reserved_bytes, event.now);
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
    default:
      return fail("a kind that is not replayed");
  }
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

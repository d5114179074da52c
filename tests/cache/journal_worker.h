// Shared parts of the journal's tests: a replay that counts, and a worker that does to a kernel
// everything that a proxy does, at random.
#pragma once

#include <array>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "cache/disk_parts.h"
#include "cache/journal.h"
#include "cache/replay.h"
#include "tests/cache/support.h"

namespace encore::cache::test {

inline KernelOptions busy_options() {
  KernelOptions options = plain_options(50'000);
  options.shards = 8;
  options.max_object_share = 8;
  options.entry_overhead_bytes = kEntryOverheadBytes;
  options.variants_max = 4;
  options.admission.policy = AdmissionPolicy::kSecondHit;
  options.admission.filter.capacity = 50;
  return options;
}

inline KernelOptions disk_options() {
  KernelOptions options = busy_options();
  options.disks = {{.segments = 8, .segment_bytes = 64 * 1024},
                   {.segments = 6, .segment_bytes = 128 * 1024}};
  options.disk_rules.write_rate_max = 4'000'000;
  options.disk_rules.life_seconds_min = 5;
  return options;
}

// Selects an entry in memory by its payload, one on disk by its variant.
class SelectBoth final : public Selector {
 public:
  SelectBoth(Payload payload, std::uint64_t variant) : payload_(payload), variant_(variant) {}
  bool matches(Payload payload) override { return payload == payload_; }
  bool matches_disk(const DiskView& view) override {
    found = view;
    return view.variant == variant_;
  }
  DiskView found;

 private:
  Payload payload_;
  std::uint64_t variant_;
};

struct Outcome {
  std::uint64_t records = 0;
  std::uint64_t differences = 0;
  std::string first;
  std::array<std::uint64_t, kEventKindCount> kinds{};
  std::uint64_t evicted = 0;
};

inline Outcome replay(const std::string& bytes, const filter::Seed& identity,
                      Replay::FindState find_state = {}) {
  std::istringstream stream(bytes);
  auto reader = JournalReader::open(stream);
  REQUIRE(reader);
  auto player = Replay::create(reader->head(), identity, std::move(find_state));
  REQUIRE(player);
  Outcome outcome;
  Event event;
  for (auto next = reader->next(event); next != JournalReader::Next::kEnd;
       next = reader->next(event)) {
    REQUIRE(next);
    ++outcome.records;
    ++outcome.kinds[static_cast<std::size_t>(event.kind)];
    outcome.evicted += event.kind == EventKind::kReserve ? event.removed : 0;
    const auto difference = (*player)->apply(event);
    REQUIRE(difference);
    if (difference->has_value() && outcome.differences++ == 0) {
      outcome.first = describe(**difference);
    }
  }
  return outcome;
}

// Now and then, whenever it is asked.
class InvalidatedAtRandom final : public InvalidationCheck {
 public:
  explicit InvalidatedAtRandom(std::uint64_t seed) : random_(seed) {}
  bool is_overtaken() const override { return random_() % 32 == 0; }

 private:
  mutable std::mt19937_64 random_;
};

// One worker: everything that a proxy does to a kernel, at random.
class Worker {
 public:
  Worker(Kernel& kernel, std::uint64_t seed)
      : kernel_(kernel), random_(seed), invalidation_check_(seed + 1) {}

  void run(int requests) {
    for (int i = 0; i < requests; ++i) {
      now_ += Nanoseconds(random_() % 100'000'000);
      request(key(popular()));
    }
  }

 private:
  std::uint64_t popular() {
    const std::uint64_t r = random_();
    return r % 4 != 0 ? r % 61 : r % 5003;
  }
  void request(const Key& key) {
    const std::uint64_t variant = random_() % 3;
    SelectBoth selector(payload_of(key, variant), variant);
    const LookupResult result = kernel_.lookup(key, now_, selector);
    if (result.on_disk() && from_disk(key, selector.found, result)) {
      return;
    }
    if (result.state == LookupState::kFresh) {
      maybe_grow(key, variant, result.payload);
      maybe_purge(key);
      return;
    }
    Stored stored{.variant = variant,
                  .charge_bytes = 50 + random_() % (random_() % 8 == 0 ? 6000 : 500),
                  .fresh_until = now_ + std::chrono::seconds(random_() % 20),
                  .keep_until = now_ + std::chrono::seconds(random_() % 60),
                  .payload = payload_of(key, variant),
                  .invalidation_check = &invalidation_check_};
    if (kernel_.disks() != 0) {
      on_disk(stored);
    }
    if (result.state == LookupState::kStale && random_() % 2 == 0) {
      kernel_.freshen(key, stored, now_);
      return;
    }
    if (kernel_.disks() != 0 && random_() % 4 == 0) {
      fetch_large(key, stored);
      return;
    }
    const AdmitRequest ask{.variant = variant,
                           .requests = random_() % 16 == 0 ? 3U : 1U,
                           .size_bytes = random_() % 2 == 0 ? stored.charge_bytes : 0,
                           .hinted = random_() % 16 == 0,
                           .rule = some_rule()};
    const AdmitReason reason = kernel_.admit(key, ask, now_);
    if (is_stored(reason)) {
      stored.waits = is_on_probation(reason);
      stored.disk_bytes = reason == AdmitReason::kWaits ? 0 : stored.disk_bytes;
      fetch(key, stored);
    }
  }
  // Mostly none.
  AdmissionRule some_rule() {
    using Kind = AdmissionRule::Kind;
    if (random_() % 4 != 0) return {};
    const auto kind = static_cast<Kind>(random_() % 6);
    switch (kind) {
      case Kind::kNthHit:
        return {kind, 2 + random_() % 3};
      case Kind::kProbability:
        return {kind, random_() >> 32U};
      case Kind::kSizeThreshold:
        return {kind, random_() % 500};
      case Kind::kPolicy:
      case Kind::kAlways:
      case Kind::kNever:
        break;
    }
    return {kind, 0};
  }
  void on_disk(Stored& stored) {
    stored.disk_bytes = random_() % 8 == 0 ? 0 : stored.charge_bytes * (1 + random_() % 3);
    stored.disk_queue_full = random_() % 16 == 0;
    const std::string names = "names-" + std::to_string(random_() % 7);
    stored.disk_names = kernel_.intern(names, now_).value_or(0);
  }
  // Whether that was all that became of the request.
  bool from_disk(const Key& key, const DiskView& view, const LookupResult& result) {
    const bool has_parts = random_() % 2 == 0 || find_parts(key);
    if (!has_parts || random_() % 40 == 0) {
      kernel_.lost(key, view.place, now_);
      return true;
    }
    if (result.promote() && random_() % 2 == 0) {
      kernel_.commit(key,
                     {.variant = view.variant,
                      .charge_bytes = 100,
                      .fresh_until = view.fresh_until,
                      .keep_until = view.keep_until,
                      .payload = payload_of(key, view.variant),
                      .from_disk = view.place},
                     0, now_);
    }
    return result.state == LookupState::kFresh && random_() % 2 == 0;
  }
  // In parts, and then in memory as well or not.
  void fetch_large(const Key& key, Stored& stored) {
    stored.disk_only = random_() % 2 == 0;
    const AdmitRequest ask{.variant = stored.variant,
                           .size_bytes = std::uint64_t{1} << 30U,
                           .disk_only = stored.disk_only};
    if (!is_stored(kernel_.admit(key, ask, now_))) {
      return;
    }
    const std::uint64_t body = body_of(key);
    for (std::uint64_t part = 0; part < 3; ++part) {
      const cache::Key own = part_key(key.hash, body, part);
      const DiskDecision decision = kernel_.place_part(own,
                                                       {.bytes = 1 + random_() % 5000,
                                                        .queue_full = random_() % 32 == 0,
                                                        .useless_from = stored.keep_until},
                                                       now_);
      if (decision.outcome != DiskOutcome::kPlaced) {
        return;
      }
      kernel_.written(own, decision.place,
                      random_() % 32 == 0 ? Kernel::Write::kFailed : Kernel::Write::kDone, now_);
    }
    stored.charge_bytes = stored.disk_only ? 0 : stored.charge_bytes;
    stored.payload = stored.disk_only ? 0 : stored.payload;
    DiskDecision decision;
    kernel_.commit(key, stored, 0, now_, &decision);
    if (decision.outcome == DiskOutcome::kPlaced) {
      kernel_.written(key, decision.place, Kernel::Write::kDone, now_);
    }
  }
  bool find_parts(const Key& key) {
    for (std::uint64_t part = 0; part < 3; ++part) {
      if (!kernel_.find_part(part_key(key.hash, body_of(key), part), now_)) {
        return false;
      }
    }
    return true;
  }
  // One of the bodies that the key had: each is there or not.
  std::uint64_t body_of(const Key& key) { return key.hash.lo + random_() % 3; }
  void fetch(const Key& key, const Stored& stored) {
    std::uint64_t reserved = 0;
    for (const std::uint64_t part : {stored.charge_bytes / 2, stored.charge_bytes / 2}) {
      if (kernel_.reserve(key, part, now_) != ReserveOutcome::kReserved) {
        kernel_.abort(key, reserved, now_);
        return;
      }
      reserved += part;
    }
    if (random_() % 10 == 0) {
      kernel_.abort(key, reserved, now_);
    } else {
      DiskDecision decision;
      kernel_.commit(key, stored, reserved, now_, &decision);
      if (decision.outcome == DiskOutcome::kPlaced) {
        kernel_.written(key, decision.place,
                        random_() % 16 == 0 ? Kernel::Write::kFailed : Kernel::Write::kDone, now_);
      }
    }
  }
  // It has got another form. Others may have replaced it since it was found.
  void maybe_grow(const Key& key, std::uint64_t variant, Payload payload) {
    if (random_() % 8 != 0) return;
    const std::uint64_t bytes = 1 + random_() % 200;
    if (kernel_.reserve(key, bytes, now_) != ReserveOutcome::kReserved) return;
    if (random_() % 8 == 0) ++payload;
    kernel_.grow(key, {.variant = variant, .payload = payload, .reserved_bytes = bytes}, now_);
  }
  void maybe_purge(const Key& key) {
    switch (random_() % 100) {
      case 0:
        kernel_.invalidate(key, now_);
        break;
      case 1:
        kernel_.remove(key, 1, now_);
        break;
      case 2:
        kernel_.mark_stale(key, now_);
        break;
      case 3:
        kernel_.make_room({.bytes = 1 + random_() % 3000, .victims_max = 5}, now_);
        break;
      default:
        break;
    }
  }
  static Payload payload_of(const Key& key, std::uint64_t variant) {
    return (key.hash.lo << 8U) | (variant + 1);
  }

  Kernel& kernel_;
  std::mt19937_64 random_;
  InvalidatedAtRandom invalidation_check_;
  MonotonicTime now_ = at(1);
};

class PurgeSome final : public Visitor {
 public:
  Verdict visit_disk(const DiskView& view) override {
    return view.place.unit % 16 == 0   ? Verdict::kRemove
           : view.place.unit % 16 == 1 ? Verdict::kMarkStale
                                       : Verdict::kKeep;
  }
  Verdict visit(const EntryView& entry) override {
    return entry.key.lo % 4 == 0   ? Verdict::kRemove
           : entry.key.lo % 4 == 1 ? Verdict::kMarkStale
                                   : Verdict::kKeep;
  }
};

// An operator's actions meanwhile: reload, shrink, purge, read figures.
inline void reclaim_disks(Kernel& kernel, MonotonicTime now) {
  const DiskPlace being_read{.disk = 0, .segment = 1, .unit = 64, .bytes = 640};
  for (std::uint16_t disk = 0; disk < kernel.disks(); ++disk) {
    DiskReclaim step;
    do {
      step = kernel.reclaim_disk(disk, std::span(&being_read, 1), now);
      if (step.state == DiskReclaim::State::kDone) {
        kernel.free_segment(disk, step.segment, now);
      }
    } while (step.state != DiskReclaim::State::kNothing);
  }
}

inline void operate(Kernel& kernel, const KernelOptions& options) {
  ReloadOptions reload = reload_options(options);
  PurgeSome purge;
  for (int round = 0; round < 8; ++round) {
    reclaim_disks(kernel, at(10 + round));
    if (kernel.disks() != 0) {
      kernel.resize_disk(1, static_cast<std::uint32_t>(6 + round % 3), at(10 + round));
      kernel.purge_rule(at(10 + round));
    }
    reload.capacity_bytes = round % 2 == 0 ? 20'000 : 50'000;
    reload.eviction = static_cast<EvictionPolicy>(round % 3);
    reload.admission.filter.capacity = 40 + static_cast<std::uint64_t>(round);
    REQUIRE(kernel.reconfigure(reload, at(10 + round)));
    while (kernel.reclaim(20, at(10 + round)) == Kernel::Reclaimed::kSome) {
      std::this_thread::yield();
    }
    Kernel::Cursor cursor;
    while (kernel.for_each(cursor, 500, purge, at(10 + round))) {
    }
    static_cast<void>(kernel.statistics());
    static_cast<void>(kernel.admission_statistics());
    static_cast<void>(kernel.save_admission(at(10 + round)));
  }
}

}  // namespace encore::cache::test

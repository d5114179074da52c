// The whole kernel against a naive model, over random sequences of everything a caller can do.
#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

// LRU, several shards, a shared budget; lists and maps, nothing clever.
class KernelModel {
 public:
  struct Entry {
    std::uint64_t id = 0;
    Stored stored;
  };
  explicit KernelModel(const KernelOptions& options) : options_(options), lru_(options.shards) {}

  LookupResult lookup(std::uint64_t id, MonotonicTime now, Payload wanted) {
    LookupResult result;
    for (const std::uint64_t variant : std::vector(chains_[id])) {
      auto& lru = lru_of(id);
      const auto entry = find(id, variant);
      const Stored stored = entry->stored;
      if (now >= stored.fresh_until && now >= stored.keep_until) {
        drop(id, variant);
        continue;
      }
      result.any_resident = true;
      if (stored.payload == wanted) {
        result.state = now < stored.fresh_until ? LookupState::kFresh : LookupState::kStale;
        result.payload = stored.payload;
        result.variant = variant;
        result.fresh_until = stored.fresh_until;
        lru.splice(lru.begin(), lru, entry);
        break;
      }
    }
    return result;
  }

  // `grows`: the variant that the bytes are for, where it is there already; evicting ends with it.
  bool reserve(std::uint64_t id, std::uint64_t bytes,
               const std::optional<std::uint64_t>& grows = {}) {
    if (bytes > effective_max_object(reload_options(options_))) {
      return false;
    }
    const std::uint32_t first = shard_of(id);
    for (std::uint32_t i = 0; i < 2 * options_.shards; ++i) {
      auto& lru = lru_[(first + i) % options_.shards];
      std::uint64_t held = 0;
      for (const Entry& entry : lru) {
        held += entry.stored.charge_bytes + options_.entry_overhead_bytes;
      }
      if (i < options_.shards && held * 2 * options_.shards < used_) continue;
      while (used_ + bytes > options_.capacity_bytes && !lru.empty()) {
        drop(lru.back().id, lru.back().stored.variant);
        if (grows && find(id, *grows) == lru_of(id).end()) {
          return false;
        }
      }
    }
    if (used_ + bytes > options_.capacity_bytes) {
      return false;
    }
    used_ += bytes;
    return true;
  }
  void abort(std::uint64_t bytes) { used_ -= bytes; }

  bool commit(std::uint64_t id, const Stored& stored, std::uint64_t reserved) {
    const std::uint64_t total = stored.charge_bytes + options_.entry_overhead_bytes;
    if (total > reserved) {
      if (!reserve(id, total - reserved)) {
        used_ -= reserved;
        return false;
      }
      reserved = total;
    }
    used_ -= reserved;
    if (total > effective_max_object(reload_options(options_))) {
      return false;
    }
    if (find(id, stored.variant) != lru_of(id).end()) {
      drop(id, stored.variant);
    }
    auto& chain = chains_[id];
    chain.insert(chain.begin(), stored.variant);
    lru_of(id).push_front({id, stored});
    used_ += total;
    while (chain.size() > options_.variants_max) {
      drop(id, chain.back());
    }
    return true;
  }

  std::uint32_t invalidate(std::uint64_t id) {
    const std::vector<std::uint64_t> chain = chains_[id];
    for (const std::uint64_t variant : chain) {
      drop(id, variant);
    }
    return static_cast<std::uint32_t>(chain.size());
  }
  bool remove(std::uint64_t id, std::uint64_t variant) {
    const bool there = find(id, variant) != lru_of(id).end();
    if (there) {
      drop(id, variant);
    }
    return there;
  }
  std::uint32_t mark_stale(std::uint64_t id, MonotonicTime now) {
    for (const std::uint64_t variant : chains_[id]) {
      Stored& stored = find(id, variant)->stored;
      stored.fresh_until = std::min(stored.fresh_until, now);
    }
    return static_cast<std::uint32_t>(chains_[id].size());
  }
  bool freshen(std::uint64_t id, const Stored& stored) {
    if (find(id, stored.variant) == lru_of(id).end()) {
      return false;
    }
    const std::uint64_t total = stored.charge_bytes + options_.entry_overhead_bytes;
    if (total > effective_max_object(reload_options(options_))) {
      return false;
    }
    const std::uint64_t before =
        find(id, stored.variant)->stored.charge_bytes + options_.entry_overhead_bytes;
    std::uint64_t reserved = 0;
    if (total > before) {
      reserved = total - before;
      if (!reserve(id, reserved, stored.variant)) {
        return false;
      }
    }
    const auto entry = find(id, stored.variant);
    used_ -= reserved;
    if (entry == lru_of(id).end()) {
      return false;
    }
    used_ += total - before;
    entry->stored = stored;
    return true;
  }

  std::uint64_t used() const { return used_; }
  std::uint64_t objects() const {
    std::uint64_t sum = 0;
    for (const auto& lru : lru_) {
      sum += lru.size();
    }
    return sum;
  }

 private:
  std::uint32_t shard_of(std::uint64_t id) const {
    return filter::shard_of(key(id).hash, options_.shards);
  }
  std::list<Entry>& lru_of(std::uint64_t id) { return lru_[shard_of(id)]; }
  std::list<Entry>::iterator find(std::uint64_t id, std::uint64_t variant) {
    auto& lru = lru_of(id);
    return std::find_if(lru.begin(), lru.end(), [&](const Entry& entry) {
      return entry.id == id && entry.stored.variant == variant;
    });
  }
  void drop(std::uint64_t id, std::uint64_t variant) {
    const auto entry = find(id, variant);
    used_ -= entry->stored.charge_bytes + options_.entry_overhead_bytes;
    lru_of(id).erase(entry);
    std::erase(chains_[id], variant);
  }

  KernelOptions options_;
  std::vector<std::list<Entry>> lru_;
  std::map<std::uint64_t, std::vector<std::uint64_t>> chains_;  // variants, latest first
  std::uint64_t used_ = 0;
};

struct Pending {
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;
};

// One random operation on both; false if they differ.
class KernelDriver {
 public:
  KernelDriver(const KernelOptions& options, std::uint64_t seed)
      : model_(options), random_(seed), kernel_(make_kernel(options, {.owner = &owner_})) {}

  bool step() {
    now_ += Nanoseconds(std::chrono::seconds(random_() % 4 == 0 ? 1 : 0));
    const bool same = one();
    const KernelStatistics statistics = kernel_->statistics();
    return same && statistics.used_bytes == model_.used() &&
           statistics.used_bytes <= statistics.capacity_bytes &&
           statistics.objects == model_.objects();
  }
  bool finish() {
    kernel_.reset();
    return owner_.each_once() && owner_.total() == taken_;
  }
  std::uint64_t hits() const { return hits_; }

 private:
  std::uint64_t random_id() { return random_() % 40; }
  Stored random_stored() {
    const MonotonicTime fresh = now_ + std::chrono::seconds(random_() % 40);
    return {.variant = random_() % 5,
            .charge_bytes = random_() % 4 == 0 ? random_() % 300 : random_() % 40,
            .fresh_until = fresh,
            .keep_until = fresh + std::chrono::seconds(random_() % 20),
            .payload = ++next_payload_};
  }
  bool one() {
    const std::uint64_t id = random_id();
    switch (random_() % 24) {
      case 0:
        return kernel_->invalidate(key(id), now_) == model_.invalidate(id);
      case 1: {
        const std::uint64_t variant = random_() % 5;
        return kernel_->remove(key(id), variant, now_) == model_.remove(id, variant);
      }
      case 2:
        return kernel_->mark_stale(key(id), now_) == model_.mark_stale(id, now_);
      case 3:
        return begin(id);
      case 4:
        return end();
      case 5:
        return freshen(id);
      case 6:
      case 7:
      case 8:
        return commit(id, {});
      default:
        return lookup(id);
    }
  }
  bool lookup(std::uint64_t id) {
    // Some payload that is or was there.
    const std::vector<Payload>& known = payloads_[id];
    const Payload wanted =
        known.empty()
            ? 0
            : known[known.size() - 1 - random_() % std::min<std::size_t>(known.size(), 3)];
    Select selector(wanted);
    const LookupResult ours = kernel_->lookup(key(id), now_, selector);
    const LookupResult theirs = model_.lookup(id, now_, wanted);
    hits_ += ours.state != LookupState::kMiss ? 1U : 0U;
    return ours.state == theirs.state && ours.any_resident == theirs.any_resident &&
           ours.payload == theirs.payload && ours.variant == theirs.variant &&
           ours.fresh_until == theirs.fresh_until;
  }
  bool begin(std::uint64_t id) {
    if (pending_.size() == 4) {
      return end();
    }
    const std::uint64_t bytes = 1 + random_() % 150;
    const bool ours = kernel_->reserve(key(id), bytes, now_) == ReserveOutcome::kReserved;
    if (ours) {
      pending_.push_back({id, bytes});
    }
    return ours == model_.reserve(id, bytes);
  }
  bool end() {
    if (pending_.empty()) {
      return true;
    }
    const Pending pending = pending_.back();
    pending_.pop_back();
    if (random_() % 3 != 0) {
      return commit(pending.id, pending);
    }
    kernel_->abort(key(pending.id), pending.bytes, now_);
    model_.abort(pending.bytes);
    return true;
  }
  bool commit(std::uint64_t id, const Pending& pending) {
    const Stored stored = random_stored();
    const CommitOutcome outcome = kernel_->commit(key(id), stored, pending.bytes, now_);
    const bool ours = outcome == CommitOutcome::kStored || outcome == CommitOutcome::kReplaced;
    took(id, stored, ours);
    return ours == model_.commit(id, stored, pending.bytes);
  }
  bool freshen(std::uint64_t id) {
    const Stored stored = random_stored();
    const bool ours = kernel_->freshen(key(id), stored, now_) == FreshenOutcome::kFreshened;
    took(id, stored, ours);
    return ours == model_.freshen(id, stored);
  }
  void took(std::uint64_t id, const Stored& stored, bool done) {
    if (done) {
      ++taken_;
      payloads_[id].push_back(stored.payload);
    }
  }

  CountingOwner owner_;
  KernelModel model_;
  std::mt19937_64 random_;
  std::unique_ptr<Kernel> kernel_;
  MonotonicTime now_ = at(0);
  std::vector<Pending> pending_;
  std::map<std::uint64_t, std::vector<Payload>> payloads_;
  std::uint64_t next_payload_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t hits_ = 0;
};

}  // namespace

TEST_CASE("The kernel does what the naive model does, whatever is asked of it", "[cache]") {
  const auto seed = GENERATE(range(std::uint64_t{1}, std::uint64_t{9}));
  KernelOptions options = plain_options(2000);
  options.eviction = EvictionPolicy::kLru;
  options.shards = seed % 2 == 0 ? 4 : 1;
  options.max_object_share = seed % 3 == 0 ? 8 : 1;
  options.variants_max = 3;
  options.entry_overhead_bytes = seed % 4 == 0 ? 7 : 0;
  KernelDriver driver(options, seed);
  INFO("seed " << seed);
  bool same = true;
  int steps = 0;
  for (; same && steps < 8000; ++steps) {
    same = driver.step();
  }
  INFO("after " << steps << " operations");
  CHECK(same);
  CHECK(steps == 8000);
  CHECK(driver.hits() > 200);
  CHECK(driver.finish());
}

}  // namespace encore::cache::test

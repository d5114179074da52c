#include "filter/rotating_bloom_filter.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "filter/saved_filter.h"

namespace encore::filter {
namespace {

// Keys that are decided in one call of the inner loop, at most.
constexpr std::size_t kRun = 256;
// Stale lines zeroed a decision: at 10 bits a key a generation is clean after half a percent of
// its cycle, and a decision pays for a few adjacent lines at most.
constexpr std::uint64_t kSweepLines = 4;

Result<void> check_options(const RotatingOptions& options) {
  if (options.generations < 2 || options.generations > kGenerationsMax) {
    return fail("a rotating filter of " + std::to_string(options.generations) +
                " generations, accepted: 2 to " + std::to_string(kGenerationsMax));
  }
  if (options.rotate_after < Nanoseconds::zero()) {
    return fail("a rotation after a negative time");
  }
  return {};
}

// A ring's keys come as 128 bits each.
Result<FilterParameters> checked_for_ring(const FilterParameters& parameters) {
  if (lists_indices(parameters.hash)) {
    return fail("a ring of generations by the hash " + std::string(to_string(parameters.hash)) +
                ", accepted: one of 128 bits");
  }
  return checked(parameters);
}

}  // namespace

std::string_view to_string(Seen seen) noexcept {
  switch (seen) {
    case Seen::kNew:
      return "new";
    case Seen::kCurrent:
      return "current";
    case Seen::kOlder:
      return "older";
  }
  return "?";
}

RotatingBloomFilter::RotatingBloomFilter(const RotatingOptions& options, MonotonicTime now)
    : options_(options), started_(now) {}
RotatingBloomFilter::RotatingBloomFilter(RotatingBloomFilter&&) noexcept = default;
RotatingBloomFilter& RotatingBloomFilter::operator=(RotatingBloomFilter&&) noexcept = default;
RotatingBloomFilter::~RotatingBloomFilter() = default;

Result<RotatingBloomFilter> RotatingBloomFilter::create(const RotatingOptions& options,
                                                        MonotonicTime now) {
  if (auto accepted = check_options(options); !accepted) {
    return std::unexpected(accepted.error());
  }
  const auto parameters = checked_for_ring(options.parameters);
  if (!parameters) {
    return std::unexpected(parameters.error());
  }
  RotatingBloomFilter filter(options, now);
  filter.options_.parameters = *parameters;
  auto bank = filter.make_bank(*parameters);
  if (!bank) {
    return std::unexpected(bank.error());
  }
  for (std::uint32_t place = 0; place < options.generations; ++place) {
    filter.generations_.push_back(filter.make_generation(*parameters, *bank, place));
  }
  if (options.shadow_one_in != 0) {
    auto shadow = Shadow::create({.one_in = options.shadow_one_in,
                                  .generations = options.generations,
                                  .capacity = std::min(parameters->capacity, parameters->bits)});
    if (!shadow) {
      return std::unexpected(shadow.error());
    }
    filter.shadow_ = std::move(*shadow);
  }
  filter.restart_theory();
  filter.refresh_fast_path();
  return filter;
}

Result<RotatingBloomFilter::Bank> RotatingBloomFilter::make_bank(
    const FilterParameters& parameters) const {
  auto memory = LineMemory::create(GenerationBits::lines_for(parameters) * options_.generations);
  if (!memory) {
    return std::unexpected(memory.error());
  }
  // Beyond one insertion a bit there is nothing to insert.
  const auto keys = static_cast<double>(std::min(parameters.capacity, parameters.bits));
  return Bank{std::make_shared<const LineMemory>(std::move(*memory)),
              std::make_shared<const FprCurve>(parameters.shape(), keys, Counting::kEffective)};
}

RotatingBloomFilter::Generation RotatingBloomFilter::make_generation(
    const FilterParameters& parameters, const Bank& bank, std::uint32_t place) const {
  Generation generation;
  generation.parameters = parameters;
  generation.bank = bank;
  generation.place = place;
  generation.bits =
      GenerationBits(parameters, bank.memory->words() + kLineWords * place, options_.generations);
  generation.identity =
      parameters.hash == HashFamily::kXxh3 && parameters.seed == options_.identity_seed;
  return generation;
}

void RotatingBloomFilter::refresh_fast_path() {
  dirty_ = std::ranges::any_of(generations_, [](const auto& g) { return g.bits.dirty(); });
  fast_ = {};
  Generation& current = generations_[0];
  const Generation& older = generations_[1];
  if (dirty_ || !adopted_.empty() || generations_.size() != 2 ||
      current.parameters.layout != Layout::kSplit || !current.identity ||
      current.bank.memory != older.bank.memory || options_.rotate_after.count() != 0) {
    return;
  }
  fast_ = {.pair = current.bits.split().pair,
           .pairs = current.bits.split().pairs,
           .lines = {.current = current.bits.words(),
                     .older = older.bits.words() - current.bits.words(),
                     .lines = current.bits.lines(),
                     .set_bits = &current.bits.set_bits_counter(),
                     .refresh = options_.refresh},
           .insertions = &current.insertions,
           .capacity = current.parameters.capacity,
           .sample_below = shadow_ ? shadow_->sample_below() : 0};
}

void RotatingBloomFilter::set_refresh(bool refresh) {
  follow();
  options_.refresh = refresh;
  theory_.set_refresh(refresh);
  refresh_fast_path();
}

void RotatingBloomFilter::set_rotate_after(Nanoseconds rotate_after) {
  options_.rotate_after = rotate_after;
  refresh_fast_path();
}

void RotatingBloomFilter::sweep() {
  bool left = false;
  for (Generation& generation : generations_) {
    left = generation.bits.sweep(kSweepLines) || left;
  }
  if (!left) {
    refresh_fast_path();
  }
}

// The identity hash itself, not a copy of it: it was written a moment ago in two halves, and
// reading it back as a whole would wait until every store before has left the processor.
const Hash128& RotatingBloomFilter::Generation::hash_of(const HashedKey& key, Hash128& own) const {
  if (identity) {
    return key.hash;
  }
  own = hash_key(parameters.hash, parameters.seed, key.bytes);
  return own;
}

RotatingBloomFilter::Decision RotatingBloomFilter::decide(const HashedKey& key) {
  const std::uint32_t held_in = locate(key);
  if (held_in == 0) {
    return {.seen = Seen::kCurrent};
  }
  const bool older = held_in < generations_.size();
  const bool adopted = !older && is_adopted(key);
  adopted_answers_ += adopted ? 1 : 0;
  if ((older || adopted) && !options_.refresh) {
    return {.seen = Seen::kOlder, .held_in = held_in, .adopted = adopted};
  }
  Hash128 own;
  count_answers(held_in, [&](const Generation& generation) {
    return generation.bits.test(generation.hash_of(key, own));
  });
  Generation& current = generations_.front();
  current.bits.insert(current.hash_of(key, own));
  return {
      .seen = older || adopted ? Seen::kOlder : Seen::kNew, .inserted = true, .adopted = adopted};
}

std::uint32_t RotatingBloomFilter::locate(const HashedKey& key) const {
  Hash128 own;
  std::uint32_t i = 0;
  while (i < generations_.size() && !generations_[i].bits.test(generations_[i].hash_of(key, own))) {
    ++i;
  }
  return i;
}

Seen RotatingBloomFilter::decide_slowly(const HashedKey& key, MonotonicTime now) {
  rotate_if_due(now);
  if (dirty_) {
    sweep();
  }
  if (shadow_ && shadow_->samples(key.hash)) {
    return decide_watched(key, now);
  }
  const Decision decision = decide(key);
  if (decision.inserted) {
    count_insertion(decision.known(), now);
  }
  return decision.seen;
}

Seen RotatingBloomFilter::decide_watched(const HashedKey& key, MonotonicTime now) {
  const double expected = follow_theory();
  const Decision decision = decide(key);
  tell_shadow(key, decision, expected);
  if (decision.inserted) {
    count_insertion(decision.known(), now);
  }
  return decision.seen;
}

void RotatingBloomFilter::tell_shadow(const HashedKey& key, const Decision& decision,
                                      double expected) {
  // The shadow does not follow a key that stays in an adopted generation.
  if (decision.held_in < generations_.size()) {
    shadow_->told(
        key.hash,
        {.seen = decision.seen != Seen::kNew, .held_in = decision.held_in, .fpr_theory = expected});
  }
}

Seen RotatingBloomFilter::test_and_set_within(const HashedKey& key, std::uint64_t capacity,
                                              MonotonicTime now) {
  rotate_if_due(now);
  const Seen before = find(key);
  const std::uint64_t planned = generations_.front().parameters.capacity;
  const std::uint64_t full = std::clamp<std::uint64_t>(capacity, 1, planned);
  if (before != Seen::kCurrent && generations_.front().insertions >= full) {
    rotate(now);
  }
  if (dirty_) {
    sweep();
  }
  const bool watched = shadow_ && shadow_->samples(key.hash);
  const double expected = watched ? follow_theory() : 0;
  const Decision decision = decide(key);
  if (watched) {
    tell_shadow(key, decision, expected);
  }
  if (decision.inserted) {
    refreshes_ += decision.known() == Seen::kOlder ? 1U : 0U;
    ++generations_.front().insertions;
  }
  ENCORE_CHECK(generations_.front().insertions <= planned,
               "a generation takes no more keys than its bits were planned for");
  return before;
}

Seen RotatingBloomFilter::test_and_set_indices(std::span<const std::uint64_t> indices,
                                               MonotonicTime now) {
  ENCORE_CHECK(options_.parameters.layout == Layout::kClassic && !shadow_,
               "indices of one's own need a classic filter without a shadow");
  ENCORE_CHECK(adopted_.empty(), "adopted generations are asked by text");
  rotate_if_due(now);
  if (dirty_) {
    sweep();
  }
  const auto holder = std::ranges::find_if(
      generations_, [&](const Generation& g) { return g.bits.test_indices(indices); });
  if (holder == generations_.begin()) {
    return Seen::kCurrent;
  }
  const Seen seen = holder == generations_.end() ? Seen::kNew : Seen::kOlder;
  if (seen == Seen::kNew || options_.refresh) {
    count_answers(static_cast<std::uint32_t>(holder - generations_.begin()),
                  [&](const Generation& g) { return g.bits.test_indices(indices); });
    generations_.front().bits.insert_indices(indices);
    count_insertion(seen, now);
  }
  return seen;
}

void RotatingBloomFilter::test_and_set(std::span<const HashedKey> keys, MonotonicTime now,
                                       std::span<Seen> out) {
  ENCORE_CHECK(keys.size() == out.size(), "an answer for each key");
  for (const HashedKey& key : keys.first(std::min(kAheadMax, keys.size()))) {
    prefetch(key.hash);
  }
  while (!keys.empty()) {
    const std::size_t done = decide_run(keys, now, out);
    keys = keys.subspan(done);
    out = out.subspan(done);
  }
}

// Decides the first of the keys, or as many of them as need no check between one and the next: none
// that the shadow wants to know, and no rotation before the last of them. Returns how many.
// REQUIRES: keys is not empty.
std::size_t RotatingBloomFilter::decide_run(std::span<const HashedKey> keys, MonotonicTime now,
                                            std::span<Seen> out) {
  std::size_t count = 0;
  if (fast_.pairs != nullptr) {
    const std::uint64_t room = fast_.capacity - std::min(fast_.capacity, *fast_.insertions);
    const std::size_t most = std::min({kRun, keys.size(), static_cast<std::size_t>(room)});
    while (count < most && sample_of(keys[count].hash) >= fast_.sample_below) {
      ++count;
    }
  }
  if (count == 0) {
    if (keys.size() > kAheadMax) {
      prefetch(keys[kAheadMax].hash);
    }
    out[0] = test_and_set(keys[0], now);
    return 1;
  }
  const PairCounts counts = fast_.pairs(fast_.lines, keys, count, out.data());
  const std::size_t refreshed = fast_.lines.refresh ? counts.older : 0;
  *fast_.insertions += counts.fresh + refreshed;
  refreshes_ += refreshed;
  if (*fast_.insertions >= fast_.capacity) {
    rotate(now);
  }
  return count;
}

Seen RotatingBloomFilter::find(const HashedKey& key) const {
  const std::uint32_t held_in = locate(key);
  if (held_in == 0) {
    return Seen::kCurrent;
  }
  return held_in < generations_.size() || is_adopted(key) ? Seen::kOlder : Seen::kNew;
}

void RotatingBloomFilter::test(std::span<const HashedKey> keys, std::span<bool> out) const {
  ENCORE_CHECK(keys.size() == out.size(), "an answer for each key");
  look_ahead(
      keys.size(), [&](std::size_t i) { prefetch(keys[i].hash); },
      [&](std::size_t i) { out[i] = test(keys[i]); });
}

void RotatingBloomFilter::prefetch_each(const Hash128& hash) const {
  for (const Generation& generation : generations_) {
    if (generation.identity) {
      generation.bits.prefetch(hash);
    }
  }
}

void RotatingBloomFilter::rotate(MonotonicTime now) {
  follow();
  earlier_insertions_ += generations_.front().insertions;
  std::ranges::rotate(generations_, generations_.end() - 1);
  Generation& current = generations_.front();
  const Generation& previous = generations_[1];
  if (current.bank.memory == previous.bank.memory) {
    current.bits.clear();
    current.insertions = 0;
  } else {
    current = make_generation(previous.parameters, previous.bank, free_place(previous.bank));
  }
  started_ = now;
  ++rotations_;
  adopted_.rotate(options_.generations);
  theory_.rotate();
  followed_.insertions = 0;
  followed_.older = theory_.fpr_older();
  if (shadow_) {
    shadow_->rotate();
  }
  refresh_fast_path();
}

std::uint32_t RotatingBloomFilter::free_place(const Bank& bank) const {
  // The bank of the current parameters has a place for every generation and gives none back, so
  // one that is free has never been used, and is all zero.
  std::uint32_t place = 0;
  const auto taken = [&] {
    return std::ranges::any_of(generations_.begin() + 1, generations_.end(), [&](const auto& g) {
      return g.bank.memory == bank.memory && g.place == place;
    });
  };
  while (taken()) {
    ++place;
  }
  ENCORE_CHECK(place < options_.generations, "a bank has as many places as generations");
  return place;
}

Result<void> RotatingBloomFilter::reconfigure(const FilterParameters& parameters,
                                              MonotonicTime now) {
  const auto accepted = checked_for_ring(parameters);
  if (!accepted) {
    return std::unexpected(accepted.error());
  }
  const FilterParameters& old = generations_.front().parameters;
  if (*accepted == old) {
    return {};
  }
  auto bank = make_bank(*accepted);
  if (!bank) {
    return std::unexpected(bank.error());
  }
  options_.parameters = *accepted;
  earlier_insertions_ += generations_.front().insertions;
  if (shadow_) {
    shadow_->set_capacity(std::min(accepted->capacity, accepted->bits));
    shadow_->rotate();
  }
  std::ranges::rotate(generations_, generations_.end() - 1);
  generations_.front() = make_generation(*accepted, *bank, 0);
  started_ = now;
  ++rotations_;
  adopted_.rotate(options_.generations);
  restart_theory();
  refresh_fast_path();
  return {};
}

Result<std::uint32_t> RotatingBloomFilter::adopt(std::shared_ptr<const AdoptedMemory> memory) {
  auto taken = adopted_.add(std::move(memory), options_.generations);
  if (!taken) {
    return taken;
  }
  if (shadow_) {
    shadow_->forget_all();
  }
  refresh_fast_path();
  return taken;
}

RotatingStatistics RotatingBloomFilter::statistics(std::uint64_t lines_max) const {
  RotatingStatistics statistics;
  const LineMemory* counted = nullptr;
  for (const Generation& generation : generations_) {
    const GenerationBits& bits = generation.bits;
    statistics.generations.push_back(
        {.parameters = generation.parameters,
         .insertions = generation.insertions,
         .set_bits = bits.set_bits(),
         .fill =
             static_cast<double>(bits.set_bits()) / static_cast<double>(generation.parameters.bits),
         .fpr_theory = generation.bank.curve->at(static_cast<double>(generation.insertions))});
    // Generations of one bank are adjacent in the ring.
    if (generation.bank.memory.get() != counted) {
      counted = generation.bank.memory.get();
      statistics.memory_bytes += counted->size_bytes();
    }
  }
  statistics.insertions = earlier_insertions_ + generations_.front().insertions;
  statistics.refreshes = refreshes_;
  statistics.rotations = rotations_;
  statistics.fpr_theory = fpr_theory();
  statistics.fpr_bits = fpr_from_bits(lines_max);
  statistics.adopted = adopted_.statistics();
  statistics.adopted.answers = adopted_answers_;
  if (shadow_) {
    statistics.measured = shadow_->measured();
    statistics.shadow_bytes = shadow_->memory_bytes();
  }
  return statistics;
}

std::string RotatingBloomFilter::save(MonotonicTime now) const {
  SavedFilter saved;
  saved.kind = SavedKind::kRing;
  saved.identity_seed = options_.identity_seed;
  saved.insertions = earlier_insertions_ + generations_.front().insertions;
  saved.refreshes = refreshes_;
  saved.rotations = rotations_;
  const RingTheory theory = theory_now();
  saved.positions.assign(theory.positions().begin(), theory.positions().end());
  saved.age_ns = static_cast<std::uint64_t>(std::max(Nanoseconds::zero(), now - started_).count());
  std::vector<const GenerationBits*> bits;
  for (const Generation& generation : generations_) {
    saved.generations.push_back(
        {generation.parameters, generation.insertions, generation.bits.set_bits(), {}});
    bits.push_back(&generation.bits);
  }
  return encode(saved, bits);
}

Result<RotatingBloomFilter> RotatingBloomFilter::load(std::string_view bytes,
                                                      const LoadOptions& options,
                                                      MonotonicTime now) {
  const auto saved = decode(bytes, {.kind = SavedKind::kRing,
                                    .generations_min = 2,
                                    .generations_max = kGenerationsMax,
                                    .bits_max = options.bits_max});
  if (!saved) {
    return std::unexpected(saved.error());
  }
  RotatingOptions restored{.parameters = saved->generations.front().parameters,
                           .generations = static_cast<std::uint32_t>(saved->generations.size()),
                           .refresh = options.refresh,
                           .rotate_after = options.rotate_after,
                           .identity_seed = saved->identity_seed,
                           .shadow_one_in = options.shadow_one_in};
  auto filter = create(restored, now);
  if (!filter) {
    return filter;
  }
  for (std::size_t i = 0; i < saved->generations.size(); ++i) {
    if (auto done = filter->restore_generation(saved->generations[i], i); !done) {
      return std::unexpected(done.error());
    }
  }
  const std::uint64_t current_insertions = saved->generations.front().insertions;
  filter->earlier_insertions_ =
      std::max(saved->insertions, current_insertions) - current_insertions;
  filter->refreshes_ = saved->refreshes;
  filter->rotations_ = saved->rotations;
  filter->resume_theory(saved->positions);
  // An age beyond what the clock can express only means: long ago.
  const auto age = std::min<std::uint64_t>(saved->age_ns, INT64_MAX / 4);
  filter->started_ = now - Nanoseconds(static_cast<std::int64_t>(age));
  if (filter->shadow_) {
    filter->shadow_->forget_all();
  }
  filter->refresh_fast_path();
  return filter;
}

Result<void> RotatingBloomFilter::restore_generation(const SavedGeneration& saved, std::size_t i) {
  const bool same_as_before = i != 0 && saved.parameters == generations_[i - 1].parameters;
  if (i != 0 && same_as_before) {
    // Side by side with the generation before, in whatever bank that has.
    const Generation& before = generations_[i - 1];
    generations_[i] = make_generation(saved.parameters, before.bank, static_cast<std::uint32_t>(i));
  } else if (i != 0) {
    auto bank = make_bank(saved.parameters);
    if (!bank) {
      return std::unexpected(bank.error());
    }
    generations_[i] = make_generation(saved.parameters, *bank, static_cast<std::uint32_t>(i));
  }
  generations_[i].insertions = saved.insertions;
  return restore(saved, generations_[i].bits);
}

}  // namespace encore::filter

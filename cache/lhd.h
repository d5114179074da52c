// LHD: Beckmann, Chen, Cidon: "LHD: improving cache hit rate by maximizing hit density" (NSDI
// 2018). The entry goes first that is expected to give the fewest hits for the space and the time
// it will take: hit density = P(it is hit) / (expected time until it is hit or evicted * size).
// Both are learnt, for each age (accesses since the last use) and class (distance between the last
// uses), from the fates of earlier entries. The victim is the lowest of a sample of entries.
//
// Unlike the paper's, ages lie in buckets that widen with the age instead of being rescaled, and a
// prior stands for what was not seen yet: that an entry lives on for as long as it has lived. A hit
// may count by what a miss would have cost. 24 bytes an entry.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "cache/chunked_vector.h"
#include "cache/draws.h"
#include "cache/eviction_order.h"
#include "cache/miss_cost.h"

namespace encore::cache {

// The statistics of LHD: hits and evictions by class and age, and the hit density that follows.
// Thread-compatible.
class HitDensity {
 public:
  static constexpr std::uint32_t kClasses = 26;
  static constexpr std::uint32_t kAges = 128;

  explicit HitDensity(double prior = 0.125, double fade = 0.875) : prior_(prior), fade_(fade) {
    update();
  }

  // Class of an entry whose last two uses lay so far apart in all; 0 is for what was never hit.
  static std::uint32_t class_of(std::uint64_t apart) {
    return std::min(static_cast<std::uint32_t>(std::bit_width(apart)), kClasses - 1);
  }
  // Four buckets an octave.
  static std::uint32_t bucket_of(std::uint64_t age) {
    if (age < 4) {
      return static_cast<std::uint32_t>(age);
    }
    const auto octave = static_cast<std::uint32_t>(std::bit_width(age)) - 1;
    return std::min((octave - 1) * 4 + static_cast<std::uint32_t>(age >> (octave - 2) & 3U),
                    kAges - 1);
  }
  // The first age of a bucket.
  static std::uint64_t age_of(std::uint32_t bucket) {
    return bucket < 4 ? bucket : std::uint64_t{4 + bucket % 4} << (bucket / 4 - 1);
  }

  void add_hit(std::uint32_t of_class, std::uint64_t age) {
    ++hits_[of_class][bucket_of(age)];
    ++ends_[of_class][bucket_of(age)];
  }
  void add_eviction(std::uint32_t of_class, std::uint64_t age) {
    ++ends_[of_class][bucket_of(age)];
  }
  // Before division by the size.
  double density(std::uint32_t of_class, std::uint64_t age) const {
    return densities_[of_class][bucket_of(age)];
  }

  // Densities anew from what was added, which fades. Some 3000 steps.
  void update() {
    for (std::uint32_t c = 0; c < kClasses; ++c) {
      double hits = 0;
      double ends = 0;
      double lived = 0;  // from the bucket's first age on, over all that end there or later
      for (std::uint32_t b = kAges; b-- != 0;) {
        const auto width = static_cast<double>(age_of(b + 1) - age_of(b));
        hits += hits_[c][b];
        lived += (ends + ends_[c][b] / 2) * width;
        ends += ends_[c][b];
        densities_[c][b] = (hits + prior_) / (lived + prior_ * static_cast<double>(age_of(b) + 1));
        hits_[c][b] *= fade_;
        ends_[c][b] *= fade_;
      }
    }
  }

 private:
  using Table = std::array<std::array<double, kAges>, kClasses>;
  double prior_;
  double fade_;
  Table hits_{};
  Table ends_{};
  Table densities_{};
};

class Lhd {
 public:
  // The victim of a cache with at most N entries is chosen among all of them.
  static constexpr std::uint32_t kSample = 32;
  static constexpr std::array kParameters = {
      PolicyParameter::count("sample", kSample, 1, 65536, "entries among which a victim is chosen"),
      PolicyParameter::real("fade", 0.875, 0, 1, "share of the statistics that each update keeps"),
      PolicyParameter::real("prior", 0.125, 0.000001, 1000, "weight of what was not seen yet"),
      kSeedParameter, MissCost::kParameter};

  explicit Lhd(EntrySlab& slab, const EvictionSettings& settings = {})
      : slab_(slab),
        sample_(settings.values.count(kParameters, "sample")),
        learnt_(settings.values.real(kParameters, "prior"),
                settings.values.real(kParameters, "fade")),
        draws_(settings.values.count(kParameters, "seed")),
        cost_(settings.values.count(kParameters, MissCost::kName), settings.fetch) {}

  void insert(EntryRef ref, const Access& /*access*/) {
    slab_.hot(ref).newer = static_cast<EntryRef>(nodes_.size());
    nodes_.push_back(
        {.used = tick() & kClockMax, .size = weighed_size(ref), .last_age = 0, .ref = ref});
  }

  void hit(EntryRef ref, const Access& /*access*/) {
    forget_victim(ref);
    const std::uint64_t now = tick();
    Node& node = nodes_[slab_.hot(ref).newer];
    const std::uint64_t age = now - node.used;
    learnt_.add_hit(node.of_class, age);
    node.of_class = static_cast<std::uint8_t>(HitDensity::class_of(age + node.last_age));
    node.last_age = static_cast<std::uint32_t>(std::min<std::uint64_t>(age, UINT32_MAX));
    node.used = now & kClockMax;
  }

  void remove(EntryRef ref, Removal why) {
    forget_victim(ref);
    const std::uint32_t place = slab_.hot(ref).newer;
    if (why == Removal::kEvicted) {
      learnt_.add_eviction(nodes_[place].of_class, clock_ - nodes_[place].used);
    }
    nodes_[place] = nodes_[nodes_.size() - 1];
    slab_.hot(nodes_[place].ref).newer = place;
    nodes_.pop_back();
  }

  void resized(EntryRef ref) { nodes_[slab_.hot(ref).newer].size = weighed_size(ref); }

  EntryRef victim() {
    if (victim_ != kNoEntry || nodes_.empty()) {
      return victim_;
    }
    const std::size_t all = nodes_.size();
    const Node* chosen = &nodes_[0];
    const std::size_t compared = std::min<std::size_t>(all, sample_);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < compared; ++i) {
      const std::uint64_t drawn = draws_.below(all);
      const Node& node = nodes_[compared == all ? i : drawn];
      const double rank = density(node);
      chosen = rank < least ? &node : chosen;
      least = std::min(rank, least);
    }
    victim_ = chosen->ref;
    return victim_;
  }

 private:
  static constexpr std::uint64_t kUpdateMin = 512;
  static constexpr std::uint64_t kClockMax = (std::uint64_t{1} << 56U) - 1;
  struct Node {
    std::uint64_t used : 56;  // kClockMax
    std::uint64_t of_class : 8 = 0;
    double size;             // by the cost of a miss
    std::uint32_t last_age;  // at the hit before the last use
    EntryRef ref;
  };

  // Time is the number of accesses.
  std::uint64_t tick() {
    if (++since_update_ >= std::max<std::uint64_t>(nodes_.size(), kUpdateMin)) {
      learnt_.update();
      since_update_ = 0;
    }
    return ++clock_;
  }
  double weighed_size(EntryRef ref) const {
    const auto size = static_cast<double>(std::max<std::uint64_t>(slab_.hot(ref).charge, 1));
    return size / cost_.of(size);
  }
  double density(const Node& node) const {
    return learnt_.density(node.of_class, clock_ - node.used) / node.size;
  }
  void forget_victim(EntryRef ref) {
    if (victim_ == ref) {
      victim_ = kNoEntry;
    }
  }

  EntrySlab& slab_;
  const std::uint64_t sample_;
  ChunkedVector<Node> nodes_;
  HitDensity learnt_;
  std::uint64_t clock_ = 0;
  std::uint64_t since_update_ = 0;
  Draws draws_;
  MissCost cost_;
  EntryRef victim_ = kNoEntry;  // chosen, until it is used or goes
};
static_assert(EvictionOrder<Lhd>);

}  // namespace encore::cache

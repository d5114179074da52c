// LeCaR: Vietri, Rodriguez, Martinez, Lyons, Liu, Rangaswami, Zhao, Narasimhan: "Driving cache
// replacement with ML-based LeCaR" (HotStorage 2018). Two experts, LRU and LFU, each with a weight:
// a victim is that of an expert drawn by the weights. It leaves a ghost in the expert's history; if
// the key comes back, the expert's weight falls by exp(-learning rate * discount^(age / N)), in
// proportion to the other's. A key of a history keeps its frequency. A victim of both experts
// leaves no ghost, and no weight falls below .01, as in the authors' program.
//
// A cache of bytes has no number of entries N; it is the entries at the moment. Each victim for one
// candidate is drawn, until the candidate fits. Victims are chosen before the candidate is known,
// so weights change behind its evictions. 36 bytes an entry, 45 to 67 a ghost; O(log N).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "cache/draws.h"
#include "cache/entry_heap.h"
#include "cache/entry_list.h"
#include "cache/eviction_order.h"
#include "cache/ghost_records.h"

namespace encore::cache {

class Lecar {
 public:
  static constexpr std::array kParameters = {
      PolicyParameter::real("learning-rate", 0.45, 0, 100, "effect of a wrong eviction"),
      PolicyParameter::real("discount", 0.005, 0.000001, 1, "of a regret after N requests"),
      PolicyParameter::share("ghost", 0.5, 0, 100, "each history, of the entries"),
      PolicyParameter::real("lru", 0.5, 0.01, 0.99, "weight of LRU at the beginning"),
      kSeedParameter};

  explicit Lecar(EntrySlab& slab, const EvictionSettings& settings = {});

  void insert(EntryRef ref, const Access& /*access*/);
  void hit(EntryRef ref, const Access& /*access*/);
  void remove(EntryRef ref, Removal why);
  void expect(const filter::Hash128& key) const {
    histories_[kLru].prefetch(key);
    histories_[kLfu].prefetch(key);
  }
  EntryRef victim();

  // Weight of LRU; LFU has the rest of 1.
  double lru_weight() const { return lru_weight_; }

 private:
  enum Expert : std::uint8_t { kLru, kLfu, kBoth };
  static constexpr double kWeightMin = 0.01;
  struct Ghost {
    double frequency = 0;
    std::uint64_t evicted = 0;  // time
  };
  void forget_victim(EntryRef ref) { victim_ = victim_ == ref ? kNoEntry : victim_; }
  // The expert's eviction was wrong. It happened so long ago.
  void regret(Expert expert, std::uint64_t age) {
    const auto entries = static_cast<double>(std::max<std::size_t>(frequencies_.size(), 1));
    const double weight = expert == kLru ? lru_weight_ : 1 - lru_weight_;
    const double lowered =
        weight *
        std::exp(-learning_rate_ * std::pow(discount_, static_cast<double>(age) / entries));
    const double share = std::clamp(lowered / (lowered + 1 - weight), kWeightMin, 1 - kWeightMin);
    lru_weight_ = expert == kLru ? share : 1 - share;
  }

  EntrySlab& slab_;
  const double learning_rate_;
  const double discount_;
  const Share ghost_share_;
  double lru_weight_;
  SideLinks links_;
  EntryList recency_;
  EntryHeap frequencies_;
  std::array<GhostRecords<Ghost>, 2> histories_;
  std::uint64_t clock_ = 0;  // accesses
  Draws draws_;
  EntryRef victim_ = kNoEntry;  // chosen, until it is used or goes
  Expert victim_of_ = kBoth;
};
static_assert(EvictionOrder<Lecar>);

}  // namespace encore::cache

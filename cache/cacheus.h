// CACHEUS: Rodriguez, Yusuf, Lyons, Paz, Rangaswami, Liu, Zhao, Narasimhan: "Learning cache
// replacement with CACHEUS" (FAST 2021), with its own two experts, drawn by weights as in LeCaR.
// - SR-LRU, scan-resistant: entries that were used again (SR) and new or demoted ones (R), of which
//   the least recent goes. A hit in R leads to SR, whose least recent entry is demoted in turn. A
//   hit on a demoted entry widens SR, a key that came back after it left R unused widens R.
// - CR-LFU, churn-resistant: among the entries used least the latest one goes.
// A ghost that comes back lowers the weight of the expert that evicted it by exp(-learning rate),
// which adapts (cache/learning_rate.h).
//
// N of the paper is the number of entries at the moment, and a period is of N requests. Until the
// first eviction all entries are in SR. A candidate may need several victims, each one drawn. They
// are chosen before the candidate is known, so its weights change behind its evictions. 36 bytes an
// entry, 45 to 67 a ghost; O(log N).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "cache/counted_list.h"
#include "cache/draws.h"
#include "cache/entry_heap.h"
#include "cache/eviction_order.h"
#include "cache/ghost_records.h"
#include "cache/learning_rate.h"

namespace encore::cache {

class Cacheus {
 public:
  static constexpr std::array kParameters = {
      PolicyParameter::share("new", 0.01, 0, 0.99,
                             "R at the beginning, of the entries; at least one"),
      PolicyParameter::share("ghost", 0.5, 0, 100, "each history, of the entries"), kSeedParameter};

  explicit Cacheus(EntrySlab& slab, const EvictionSettings& settings = {});

  void insert(EntryRef ref, const Access& /*access*/);
  void hit(EntryRef ref, const Access& /*access*/);
  void remove(EntryRef ref, Removal why);
  void expect(const filter::Hash128& key) const {
    histories_[kLru].prefetch(key);
    histories_[kLfu].prefetch(key);
  }
  EntryRef victim();

  // Weight of SR-LRU; CR-LFU has the rest of 1.
  double lru_weight() const { return lru_weight_; }
  double learning_rate() const { return learning_rate_.value(); }

 private:
  enum Expert : std::uint8_t { kLru, kLfu, kBoth };
  // Places of an entry, its policy_bits: in SR, or in R.
  static constexpr std::uint32_t kReused = 0;
  static constexpr std::uint32_t kNew = 1;
  static constexpr std::uint32_t kDemoted = 2;
  static constexpr double kWeightMin = 0.01;
  struct Ghost {
    double frequency = 0;
    bool was_new = false;  // never used in R
  };

  std::uint64_t entries() const { return frequencies_.size(); }
  CountedList& list_of(std::uint32_t place) { return place == kReused ? reused_ : new_; }
  void put(EntryRef ref, std::uint32_t place) {
    slab_.hot(ref).policy_bits = place & 3U;
    list_of(place).push_newest(links_, ref);
    demoted_ += place == kDemoted ? 1U : 0U;
  }
  void take(EntryRef ref) {
    const std::uint32_t place = slab_.hot(ref).policy_bits;
    list_of(place).unlink(links_, ref);
    demoted_ -= place == kDemoted ? 1U : 0U;
  }
  void forget_victim(EntryRef ref) { victim_ = victim_ == ref ? kNoEntry : victim_; }

  // SR has at most the entries that R is not to have.
  void limit_reused() {
    while (filled_ && reused_.size() + new_limit() > entries() && reused_.size() != 0) {
      const EntryRef oldest = reused_.oldest();
      take(oldest);
      put(oldest, kDemoted);
    }
  }
  // At least one entry is in R, and one in SR.
  std::uint64_t new_limit() const {
    return std::min(new_limit_, std::max<std::uint64_t>(entries(), 2) - 1);
  }
  // Rounded, of counts that may be none; at least 1.
  static std::uint64_t ratio(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t by = std::max<std::uint64_t>(b, 1);
    return std::max<std::uint64_t>((2 * a + by) / (2 * by), 1);
  }

  void remember(Expert expert, const filter::Hash128& key, const Ghost& ghost) {
    auto& history = histories_[expert];
    const std::uint64_t limit = ghost_share_.of(entries());
    if (const auto of_variant = history.take(key)) {
      evicted_new_ -= expert == kLru && of_variant->was_new ? 1U : 0U;
    }
    if (limit != 0) {
      history.insert(key, ghost);
      evicted_new_ += expert == kLru && ghost.was_new ? 1U : 0U;
    }
    while (history.size() > limit) {
      const Ghost oldest = history.take_oldest();
      evicted_new_ -= expert == kLru && oldest.was_new ? 1U : 0U;
    }
  }
  // True if the key was in a history, which it leaves: the expert was wrong.
  bool take_ghost(EntryRef ref, Ghost& ghost) {
    for (const Expert expert : {kLru, kLfu}) {
      if (const auto found = histories_[expert].take(slab_.hot(ref).key)) {
        ghost = *found;
        if (expert == kLru && ghost.was_new) {
          --evicted_new_;
          const std::uint64_t most = std::max<std::uint64_t>(entries(), 1);
          new_limit_ = std::min(new_limit() + ratio(demoted_, evicted_new_), most);
        }
        regret(expert);
        return true;
      }
    }
    return false;
  }
  void regret(Expert expert) {
    const double weight = expert == kLru ? lru_weight_ : 1 - lru_weight_;
    const double lowered = weight * std::exp(-learning_rate_.value());
    const double share = std::clamp(lowered / (lowered + 1 - weight), kWeightMin, 1 - kWeightMin);
    lru_weight_ = expert == kLru ? share : 1 - share;
  }
  // A period ends behind its last request.
  void count_request(bool hit) {
    if (!filled_) {
      return;
    }
    if (requests_ >= std::max<std::uint64_t>(entries(), 1)) {
      learning_rate_.adapt(hits_, requests_, draws_);
      requests_ = 0;
      hits_ = 0;
    }
    ++requests_;
    hits_ += hit ? 1U : 0U;
  }

  EntrySlab& slab_;
  const Share new_share_;
  const Share ghost_share_;
  SideLinks links_;
  CountedList reused_;  // SR
  CountedList new_;     // R
  LatestFirstHeap frequencies_;
  std::array<GhostRecords<Ghost>, 2> histories_;
  std::uint64_t demoted_ = 0;      // entries
  std::uint64_t evicted_new_ = 0;  // ghosts of SR-LRU that were never used in R
  std::uint64_t new_limit_ = 1;
  double lru_weight_ = 0.5;
  LearningRate learning_rate_;
  std::uint64_t requests_ = 0;  // in this period
  std::uint64_t hits_ = 0;
  Draws draws_;
  EntryRef victim_ = kNoEntry;  // chosen, until it is used or goes
  Expert victim_of_ = kBoth;
  bool filled_ = false;
};
static_assert(EvictionOrder<Cacheus>);

}  // namespace encore::cache

// W-TinyLFU: Einziger, Friedman, Manes: "TinyLFU: a highly efficient cache admission policy"
// (2017). New entries go through a small LRU window (a hundredth of the entries); what leaves it
// must have been asked for more often lately than the victim of the main part, a segmented LRU, to
// take its place. Frequencies are those of a sketch that sees insertions and hits.
//
// The sample W, after which all frequencies are halved, is ten times the cache's capacity in
// entries. A cache of bytes has no such capacity, only an estimate that changes: the entries that
// it holds at the moment. So W follows immediately, up and down, and is not rounded to a power of
// two.
//
// AdaptiveWTinyLfu: Einziger, Eytan, Friedman, Manes: "Adaptive software cache management"
// (Middleware 2018). At the end of each sample a hill climber widens or narrows the window
// (cache/hill_climber.h). Entries move immediately: to a wider window those on probation that were
// used longest ago, from a narrower one its oldest.
#pragma once

#include <array>
#include <type_traits>

#include "cache/counted_list.h"
#include "cache/eviction_order.h"
#include "cache/frequency_sketch.h"
#include "cache/hill_climber.h"

namespace encore::cache {

inline constexpr std::array kWTinyLfuParameters = {
    PolicyParameter::share("window", 0.01, 0, 0.99, "window, of all entries"),
    PolicyParameter::share("protected", 0.8, 0, 1, "protected segment, of the main part"),
    PolicyParameter::count("sample", 10, 1, 1000, "requests per entry until counts are halved")};
inline constexpr std::array kAdaptiveWTinyLfuParameters = {
    PolicyParameter::share("window", 0.01, 0, 0.99, "first window, of all entries"),
    kWTinyLfuParameters[1],
    PolicyParameter::count("sample", 10, 1, 1000,
                           "requests per entry until counts are halved, and until a change"),
    PolicyParameter::share("most", 0.8, 0, 0.99, "widest window, of all entries"),
    PolicyParameter::real("step", 0.0625, 0.000001, 1, "first change, of all entries"),
    PolicyParameter::real("decay", 0.98, 0, 1, "factor of each further change"),
    PolicyParameter::real("restart", 0.05, 0, 1, "change of the hit ratio that begins anew")};

template <bool kAdaptive>
class BasicWTinyLfu {
 public:
  static constexpr auto kParameters = [] {
    if constexpr (kAdaptive) {
      return kAdaptiveWTinyLfuParameters;
    } else {
      return kWTinyLfuParameters;
    }
  }();

  explicit BasicWTinyLfu(EntrySlab& slab, const EvictionSettings& settings = {})
      : slab_(slab),
        window_share_(settings.values.share(kParameters, "window")),
        protected_share_(settings.values.share(kParameters, "protected")),
        sample_(settings.values.count(kParameters, "sample")) {
    if constexpr (kAdaptive) {
      climber_ = HillClimber({.at = settings.values.real(kParameters, "window"),
                              .most = settings.values.real(kParameters, "most"),
                              .step = settings.values.real(kParameters, "step"),
                              .decay = settings.values.real(kParameters, "decay"),
                              .restart = settings.values.real(kParameters, "restart")});
    }
  }

  void insert(EntryRef ref, const Access& /*access*/) {
    HotEntry& entry = slab_.hot(ref);
    entry.policy_bits = kWindow;
    window_.push_newest(slab_, ref);
    count(entry.key);
    // Until the first eviction there is room for all: nothing has to win its place.
    if (!filled_ && window_is_large() && window_.size() > 1) {
      move(window_.oldest(), kProbation);
    }
    if constexpr (kAdaptive) {
      climb(0);
    }
  }

  void hit(EntryRef ref, const Access& /*access*/) {
    HotEntry& entry = slab_.hot(ref);
    count(entry.key);
    list_of(entry).unlink(slab_, ref);
    if (entry.policy_bits == kWindow) {
      window_.push_newest(slab_, ref);
    } else {
      entry.policy_bits = kProtected;
      protected_.push_newest(slab_, ref);
      if (protected_is_large()) {
        move(protected_.oldest(), kProbation);
      }
    }
    if constexpr (kAdaptive) {
      climb(1);
    }
  }

  void remove(EntryRef ref, Removal why) {
    filled_ = filled_ || why == Removal::kEvicted;
    // The candidate has won: it takes the place of the victim of the main part.
    if (why == Removal::kEvicted && slab_.hot(ref).policy_bits != kWindow && window_is_large()) {
      move(window_.oldest(), kProbation);
    }
    list_of(slab_.hot(ref)).unlink(slab_, ref);
  }

  EntryRef victim() {
    const EntryRef main =
        probation_.oldest() != kNoEntry ? probation_.oldest() : protected_.oldest();
    const EntryRef candidate = window_.oldest();
    if (main == kNoEntry ||
        (candidate != kNoEntry && window_is_large() && loses(candidate, main))) {
      return candidate;
    }
    return main;
  }

  // The window's share of the entries.
  double window() const
    requires kAdaptive
  {
    return climber_.at();
  }

 private:
  static constexpr std::uint32_t kWindow = 0;
  static constexpr std::uint32_t kProbation = 1;
  static constexpr std::uint32_t kProtected = 2;
  struct Nothing {};

  std::uint64_t total() const {
    return std::uint64_t{window_.size()} + probation_.size() + protected_.size();
  }
  CountedList& list_of(const HotEntry& entry) {
    return entry.policy_bits == kWindow      ? window_
           : entry.policy_bits == kProbation ? probation_
                                             : protected_;
  }
  void move(EntryRef ref, std::uint32_t to) {
    HotEntry& entry = slab_.hot(ref);
    list_of(entry).unlink(slab_, ref);
    entry.policy_bits = to & 3U;
    list_of(entry).push_newest(slab_, ref);
  }
  void count(const filter::Hash128& key) {
    if (total() > sketch_.keys()) {
      sketch_.resize(2 * sketch_.keys());  // the one width that blurs nothing
    }
    sketch_.increment(key);
    if (++counted_ >= sample_ * total()) {
      age();
    }
  }
  void age() {
    sketch_.halve();
    counted_ /= 2;
    // An eighth of room, so that entries that come and go change nothing.
    if (sketch_.keys() > total() + total() / 4) {
      sketch_.resize(total() + total() / 8);
    }
  }

  // One more request of the sample, and how many hits. At its end the window changes.
  [[gnu::noinline]] void climb(std::uint64_t hits) {
    if (!filled_) {
      return;
    }
    hits_ += hits;
    if (++requests_ < sample_ * total()) {
      return;
    }
    window_share_ =
        Share(climber_.next(static_cast<double>(hits_) / static_cast<double>(requests_)));
    requests_ = 0;
    hits_ = 0;
    while (window_is_large() && window_.size() > 1) {
      move(window_.oldest(), kProbation);
    }
    while (window_.size() < window_share_.of(total())) {
      move(probation_.oldest() != kNoEntry ? probation_.oldest() : protected_.oldest(), kWindow);
    }
    while (protected_is_large()) {
      move(protected_.oldest(), kProbation);
    }
  }

  bool window_is_large() const { return window_share_.exceeded_by(window_.size(), total()); }
  bool protected_is_large() const {
    return protected_share_.exceeded_by(protected_.size(),
                                        std::uint64_t{protected_.size()} + probation_.size());
  }
  bool loses(EntryRef candidate, EntryRef main) const {
    return sketch_.frequency(slab_.hot(candidate).key) <= sketch_.frequency(slab_.hot(main).key);
  }

  EntrySlab& slab_;
  std::conditional_t<kAdaptive, Share, const Share> window_share_;
  const Share protected_share_;
  const std::uint64_t sample_;
  [[no_unique_address]] std::conditional_t<kAdaptive, HillClimber, Nothing> climber_;
  CountedList window_;
  CountedList probation_;
  CountedList protected_;
  FrequencySketch sketch_;
  std::uint64_t counted_ = 0;   // insertions and hits of the sample so far
  std::uint64_t requests_ = 0;  // since the window changed
  std::uint64_t hits_ = 0;
  bool filled_ = false;
};
using WTinyLfu = BasicWTinyLfu<false>;
using AdaptiveWTinyLfu = BasicWTinyLfu<true>;
static_assert(EvictionOrder<WTinyLfu>);
static_assert(EvictionOrder<AdaptiveWTinyLfu>);

}  // namespace encore::cache

// Hyperbolic caching: Blankstein, Sen, Freedman: "Hyperbolic caching: flexible caching for web
// applications" (ATC 2017). The entry goes first that was used least often for each moment since it
// was stored, and for each byte, by what a miss would have cost; the victim is the lowest of a
// sample of 64 entries. 16 bytes an entry.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "cache/chunked_vector.h"
#include "cache/draws.h"
#include "cache/eviction_order.h"
#include "cache/miss_cost.h"

namespace encore::cache {

class Hyperbolic {
 public:
  // The victim of a cache with at most so many entries is chosen among all of them.
  static constexpr std::uint32_t kSample = 64;

  static constexpr std::array kParameters = {
      PolicyParameter::count("sample", kSample, 1, 65536, "entries among which a victim is chosen"),
      kSeedParameter, MissCost::kParameter};

  explicit Hyperbolic(EntrySlab& slab, const EvictionSettings& settings = {})
      : slab_(slab),
        sample_(settings.values.count(kParameters, "sample")),
        draws_(settings.values.count(kParameters, "seed")),
        cost_(settings.values.count(kParameters, MissCost::kName), settings.fetch) {}

  void insert(EntryRef ref, const Access& /*access*/) {
    slab_.hot(ref).newer = static_cast<EntryRef>(nodes_.size());
    nodes_.push_back({.stored = ++clock_, .uses = 1, .ref = ref});
  }
  void hit(EntryRef ref, const Access& /*access*/) {
    ++clock_;
    forget_victim(ref);
    Node& node = nodes_[slab_.hot(ref).newer];
    node.uses += node.uses == UINT32_MAX ? 0U : 1U;
  }
  void resized(EntryRef ref) { forget_victim(ref); }
  void remove(EntryRef ref, Removal /*why*/) {
    forget_victim(ref);
    const std::uint32_t place = slab_.hot(ref).newer;
    nodes_[place] = nodes_[nodes_.size() - 1];
    slab_.hot(nodes_[place].ref).newer = place;
    nodes_.pop_back();
  }
  EntryRef victim() {
    const std::size_t all = nodes_.size();
    if (victim_ != kNoEntry || all == 0) {
      return victim_;
    }
    const std::size_t compared = std::min<std::size_t>(all, sample_);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < compared; ++i) {
      const std::uint64_t drawn = draws_.below(all);
      const Node& node = nodes_[compared == all ? i : drawn];
      const double rank = rank_of(node);
      victim_ = rank < least ? node.ref : victim_;
      least = std::min(rank, least);
    }
    return victim_;
  }

 private:
  struct Node {
    std::uint64_t stored;
    std::uint32_t uses;
    EntryRef ref;
  };
  double rank_of(const Node& node) const {
    const auto size = static_cast<double>(std::max<std::uint64_t>(slab_.hot(node.ref).charge, 1));
    return node.uses * cost_.of(size) / (static_cast<double>(clock_ - node.stored + 1) * size);
  }
  void forget_victim(EntryRef ref) { victim_ = victim_ == ref ? kNoEntry : victim_; }

  EntrySlab& slab_;
  const std::uint64_t sample_;
  ChunkedVector<Node> nodes_;
  std::uint64_t clock_ = 0;  // accesses
  Draws draws_;
  MissCost cost_;
  EntryRef victim_ = kNoEntry;  // chosen, until it is used or goes
};
static_assert(EvictionOrder<Hyperbolic>);

}  // namespace encore::cache

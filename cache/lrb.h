// LRB: Song, Berger, Li, Lloyd: "Learning relaxed Belady for content distribution network caching"
// (NSDI 2020). Gradient-boosted trees predict the time until an object's next request from its
// earlier ones (cache/use_history.h). Among a sample of 64 entries the one with the farthest next
// request goes first, after those that were not requested for the memory window: such are
// forgotten, and times beyond the window count as equal. Training examples are objects drawn
// at each request, in the cache or evicted; their target is the time until their next request, or
// twice the window. After each batch of examples the model is learnt anew. Until the first, and if
// there is no regressor (EvictionSettings), LRB is LRU.
//
// The paper chooses the window on the trace; here it is a multiple of the entries at the moment.
// Sizes are a feature. As in the paper, one object's bytes are worth the same as another's; with
// by-size=1 the largest product of time and size goes. A candidate may need several victims. Takes
// up to 300 bytes for each object requested within the window, 200 for each example that waits, and
// 400 for each of a batch. O(1) a request; O(sample * trees * depth) an eviction.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/draws.h"
#include "cache/entry_list.h"
#include "cache/eviction_order.h"
#include "cache/examples.h"
#include "cache/ghost_queue.h"
#include "cache/use_history.h"

namespace encore::cache {

class Lrb {
 public:
  static constexpr std::array kParameters = {
      PolicyParameter::share("window", 10, 0.1, 1000, "memory window in requests, of the entries"),
      PolicyParameter::count("sample", 64, 1, 4096, "entries among which a victim is chosen"),
      PolicyParameter::count("batch", 32768, 16, 4194304, "examples of a training"),
      PolicyParameter::count("trees", 32, 1, 1024, "trees of the model"),
      PolicyParameter::count("leaves", 32, 2, 1024, "the most leaves of a tree"),
      PolicyParameter::real("rate", 0.1, 0.001, 1, "correction by each tree"),
      PolicyParameter::count("by-size", 0, 0, 1,
                             "1: the largest time * size goes, for object hits"),
      kSeedParameter};

  explicit Lrb(EntrySlab& slab, const EvictionSettings& settings = {});

  void insert(EntryRef ref, const Access& /*access*/);
  void hit(EntryRef ref, const Access& /*access*/);
  void remove(EntryRef ref, Removal why);
  void resized(EntryRef /*ref*/) {}  // the next use says its size

  EntryRef victim();

 private:
  static constexpr std::uint32_t kNone = 0;
  static constexpr std::uint32_t kNowhere = 0xffffffffU;
  // An object: an entry, or evicted and requested within the window.
  struct Record {
    UseHistory uses;
    std::uint64_t key = 0;
    EntryRef ref = kNoEntry;
    Examples::List examples = Examples::kNone;
    std::uint32_t place = kNowhere;  // in known_; of a free record: the next
    std::uint32_t earlier = kNone;   // in the order of the last uses
    std::uint32_t later = kNone;
  };

  bool is_overdue(std::uint32_t number) const { return records_[number].place == kNowhere; }
  void forget_victim(EntryRef ref) { victim_ = victim_ == ref ? kNoEntry : victim_; }
  std::uint64_t window() const {
    return std::max<std::uint64_t>(window_share_.of(entries_.size()), 1);
  }

  std::uint32_t allocate(std::uint64_t key) {
    std::uint32_t number = free_;
    if (number == kNone) {
      number = static_cast<std::uint32_t>(records_.size());
      records_.emplace_back();
    } else {
      free_ = records_[number].place;
      records_[number] = Record();
    }
    records_[number].key = key;
    return number;
  }
  // It can be drawn for an example, and has the latest use.
  void know(std::uint32_t number) {
    records_[number].place = static_cast<std::uint32_t>(known_.size());
    known_.push_back(number);
    link_latest(number);
  }
  void unknow(std::uint32_t number) {
    unlink(number);
    const std::uint32_t place = records_[number].place;
    known_[place] = known_.back();
    records_[known_[place]].place = place;
    known_.pop_back();
    records_[number].place = kNowhere;
  }
  void link_latest(std::uint32_t number) {
    records_[number].earlier = latest_;
    records_[number].later = kNone;
    (latest_ == kNone ? earliest_ : records_[latest_].later) = number;
    latest_ = number;
  }
  void unlink(std::uint32_t number) {
    const Record& record = records_[number];
    (record.earlier == kNone ? earliest_ : records_[record.earlier].later) = record.later;
    (record.later == kNone ? latest_ : records_[record.later].earlier) = record.earlier;
  }
  // REQUIRES: it is neither an entry nor in evicted_.
  void drop(std::uint32_t number) {
    examples_.drop(records_[number].examples);
    if (!is_overdue(number)) {
      unknow(number);
    }
    records_[number].place = free_;
    free_ = number;
  }

  void begin_request() {
    ++clock_;
    // Until the first eviction the entries are no measure of the window.
    while (filled_ && earliest_ != kNone && records_[earliest_].uses.last() + window() < clock_) {
      const std::uint32_t number = earliest_;
      examples_.end_after(records_[number].examples, 2 * window());
      if (records_[number].ref == kNoEntry) {
        evicted_.erase(records_[number].key);
        drop(number);
      } else {
        unknow(number);
      }
    }
  }
  void use(std::uint32_t number) {
    if (is_overdue(number)) {
      know(number);
    } else {
      unlink(number);
      link_latest(number);
    }
    Record& record = records_[number];
    examples_.end_at(record.examples, clock_);
    record.uses.use(clock_, slab_.hot(record.ref).charge);
    if (model_ != nullptr && filled_) {
      Record& drawn = records_[known_[draws_.below(known_.size())]];
      drawn.uses.write(clock_, examples_.add(drawn.examples, clock_));
      learn();
    }
  }
  void learn() {
    if (examples_.size() >= batch_) {
      model_->fit(examples_.rows(), examples_.targets());
      examples_.clear_batch();
      is_trained_ = true;
    }
  }
  EntryRef farthest() {
    const std::size_t all = entries_.size();
    candidates_.clear();
    for (std::size_t i = 0; i < std::min<std::size_t>(all, sample_); ++i) {
      candidates_.push_back(entries_[all <= sample_ ? i : draws_.below(all)]);
    }
    rows_.resize(candidates_.size() * UseHistory::kFeatures);
    predicted_.resize(candidates_.size());
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      records_[slab_.hot(candidates_[i]).newer].uses.write(clock_,
                                                           &rows_[i * UseHistory::kFeatures]);
    }
    model_->predict(rows_, predicted_);
    for (std::size_t i = 0; by_size_ && i < candidates_.size(); ++i) {
      predicted_[i] += std::log2(static_cast<float>(slab_.hot(candidates_[i]).charge));
    }
    return candidates_[static_cast<std::size_t>(std::ranges::max_element(predicted_) -
                                                predicted_.begin())];
  }

  EntrySlab& slab_;
  const Share window_share_;
  const std::uint64_t sample_;
  const std::uint64_t batch_;
  const bool by_size_;
  std::unique_ptr<Regressor> model_;  // null: there is none
  bool is_trained_ = false;
  bool filled_ = false;
  std::uint64_t clock_ = 0;  // accesses
  Draws draws_;
  std::vector<EntryRef> entries_;  // an entry's place is its `older`, its record its `newer`
  SideLinks links_;
  EntryList recency_;
  std::vector<Record> records_ = std::vector<Record>(1);
  std::vector<std::uint32_t> known_;  // requested within the window
  std::uint32_t earliest_ = kNone;
  std::uint32_t latest_ = kNone;
  std::uint32_t free_ = kNone;
  GhostMap evicted_;  // records by keys
  Examples examples_{UseHistory::kFeatures};
  std::vector<EntryRef> candidates_;
  std::vector<float> rows_;
  std::vector<float> predicted_;
  EntryRef victim_ = kNoEntry;  // chosen, until it is used or goes
};
static_assert(EvictionOrder<Lrb>);

}  // namespace encore::cache

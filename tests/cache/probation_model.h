// The naive model of probation: the rules one by one on plain containers, every search a walk from
// one end to the other, exact sets in the place of the pair. Slow on purpose: nothing in it is
// there for speed. A defect can be planted in it, to see that a comparison finds it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "cache/probation_cache.h"

namespace encore::cache::test {

enum class Defect : std::uint8_t {
  kNone,
  kHitsInMemoryAdmit,
  kDiskHitsGoIntoMemory,
  kLargeOnesNeedNoNewerKey,
  kMovesFromOneVisit,
  kMovesKeepVisits,
  kMovesHaveNoOrder,
  kMovesWithoutLimit,
  kVisitsHaveNoLimit,
  kRotatesAfterTheLastKey,
  kNoRefresh,
  kAdmittedWaitToo,
  kKeysDoNotWait,
  kKeysCostNothing,
  kFillsForEver,
  kMeanOfAll,
  kSmallSegments,
};
inline constexpr std::size_t kDefects = 17;

class ProbationModel {
 public:
  struct InMemory {
    std::uint64_t key = 0;
    std::uint64_t size = 0;
    bool only_key = false;
    bool was_hit = false;
    MonotonicTime since{};
    MonotonicTime fresh_until{};
  };
  struct OnDisk {
    std::uint64_t key = 0;
    std::uint64_t size = 0;
    int visits = 0;
    bool was_visited = false;
    MonotonicTime fresh_until{};
    bool filled = false;
  };

  ProbationModel(const ProbationCacheSettings& settings, Defect defect)
      : rule(settings.rule), settings_(settings), defect_(defect) {}

  // `id` is what the set knows the key by.
  ProbationAnswer request(std::uint64_t id, const ProbationRequest& r) {
    ProbationAnswer answer;
    if (InMemory* m = in_memory(id); m != nullptr && !m->only_key) {
      answer.found = ProbationPlace::kMemory;
      answer.was_stale = r.now >= m->fresh_until;
      if (answer.was_stale) m->fresh_until = r.fresh_until;
      m->size = r.size_bytes;
      m->was_hit = true;
    } else if (OnDisk* d = on_disk(id); d != nullptr) {
      answer.found = ProbationPlace::kDisk;
      answer.was_stale = r.now >= d->fresh_until;
      if (answer.was_stale) d->fresh_until = r.fresh_until;
      if (d->visits < 7 || defect_ == Defect::kVisitsHaveNoLimit) ++d->visits;
      d->was_visited = true;
      if (defect_ == Defect::kDiskHitsGoIntoMemory && m == nullptr) {
        memory.push_back({id, r.size_bytes, false, false, r.now, r.fresh_until});
      }
    } else {
      answer.verdict = missed(id, r);
    }
    shrink_memory(r.now);
    return answer;
  }

  double mean_bytes() const { return mean_; }

  std::vector<InMemory> memory;  // oldest first
  std::vector<OnDisk> disk;      // oldest first
  ProbationRule rule;
  bool full_once = false;
  std::uint64_t first_bytes = 0;
  std::uint64_t fill_bytes = 0;
  std::uint64_t moved_bytes = 0;
  std::uint64_t dropped = 0;
  std::uint64_t admitted_dropped = 0;
  std::uint64_t admitted_visited = 0;

 private:
  ProbationVerdict missed(std::uint64_t id, const ProbationRequest& r) {
    ++fetched_;
    const double weight = defect_ == Defect::kMeanOfAll ? static_cast<double>(fetched_)
                                                        : std::min(4096.0, double(fetched_));
    mean_ += (double(r.size_bytes) - mean_) / weight;
    if (in_memory(id) != nullptr) return ProbationVerdict::kKeyStillWaits;
    const bool large = double(r.size_bytes) > mean_;
    bool known = newer_.contains(id) ||
                 (older_.contains(id) && (!large || defect_ == Defect::kLargeOnesNeedNoNewerKey));
    if (known && rule.chance < 1) {
      const std::uint64_t draw = filter::scrambled(r.key.hi + fetched_ * 0x9e3779b97f4a7c15U);
      known = double(draw) / 18446744073709551616.0 < rule.chance;
    }
    if (known) {
      if (defect_ != Defect::kNoRefresh) insert(id);
      if (r.size_bytes > settings_.disk_bytes / 8) return ProbationVerdict::kKnownTooLarge;
      write(id, r.size_bytes, r.fresh_until);
      first_bytes += r.size_bytes;
      if (defect_ == Defect::kAdmittedWaitToo) {
        memory.push_back({id, r.size_bytes, false, false, r.now, r.fresh_until});
      }
      return ProbationVerdict::kAdmitted;
    }
    if (r.size_bytes <= settings_.memory_bytes / 8) {
      memory.push_back({id, r.size_bytes, false, false, r.now, r.fresh_until});
      return ProbationVerdict::kWaits;
    }
    if (memory.empty() || defect_ == Defect::kKeysDoNotWait) {
      insert(id);
    } else {
      memory.push_back({id, r.size_bytes, true, false, r.now, r.fresh_until});
    }
    return ProbationVerdict::kKeyWaits;
  }

  void shrink_memory(MonotonicTime now) {
    while (!memory.empty()) {
      std::uint64_t bytes = 0;
      for (const InMemory& m : memory) {
        bytes += !m.only_key ? m.size : defect_ == Defect::kKeysCostNothing ? 0 : 64;
      }
      const bool old =
          settings_.wait_max.count() != 0 && now - memory.front().since >= settings_.wait_max;
      if (bytes <= settings_.memory_bytes && !old) return;
      const InMemory m = memory.front();
      memory.erase(memory.begin());
      const bool fills = settings_.fill && (!full_once || defect_ == Defect::kFillsForEver);
      const bool earned = defect_ == Defect::kHitsInMemoryAdmit && m.was_hit;
      if (!m.only_key && m.size <= settings_.disk_bytes / 8 && on_disk(m.key) == nullptr &&
          (fills || rule.all || earned)) {
        write(m.key, m.size, m.fresh_until);
        disk.back().filled = fills;
        (fills ? fill_bytes : first_bytes) += m.size;
      } else {
        insert(m.key);
      }
    }
  }

  void insert(std::uint64_t id) {
    if (newer_.contains(id)) return;
    double objects = 0;
    std::uint64_t bytes = 0;
    for (const OnDisk& d : disk) bytes += d.size, ++objects;
    if (disk.empty()) {
      for (const InMemory& m : memory) {
        if (!m.only_key) bytes += m.size, ++objects;
      }
    }
    objects = bytes == 0 ? 0 : objects * (double(settings_.disk_bytes) / double(bytes));
    const double full = std::clamp(rule.window * objects, 1.0, double(settings_.keys.capacity));
    const auto rotate = [&] {
      older_ = std::move(newer_);
      newer_.clear();
    };
    if (double(newer_.size()) >= full) rotate();
    newer_.insert(id);
    if (defect_ == Defect::kRotatesAfterTheLastKey && double(newer_.size()) >= full) rotate();
  }

  void write(std::uint64_t id, std::uint64_t size, MonotonicTime fresh_until) {
    while (disk_bytes() + size > settings_.disk_bytes) reclaim();
    disk.push_back({id, size, 0, false, fresh_until});
  }

  void reclaim() {
    full_once = true;
    std::uint64_t segment = settings_.disk_bytes / 32;
    if (defect_ != Defect::kSmallSegments) {
      segment = std::max(segment, 8 * disk_bytes() / std::max<std::uint64_t>(1, disk.size()));
    }
    std::vector<OnDisk> gone;
    std::uint64_t bytes = 0;
    while (!disk.empty() && bytes < segment) {
      bytes += disk.front().size;
      gone.push_back(disk.front());
      disk.erase(disk.begin());
    }
    std::uint64_t room = segment / 2;
    const int least = defect_ == Defect::kMovesFromOneVisit ? 1 : 2;
    // Rounds from the highest counter to the lowest, each in the order of the log.
    for (int visits = 1000; visits >= 0; --visits) {
      for (const OnDisk& d : gone) {
        const int rank =
            defect_ == Defect::kMovesHaveNoOrder && d.visits >= least ? 1000 : d.visits;
        if (std::min(rank, 1000) != visits) continue;
        if (d.visits >= least && (d.size <= room || defect_ == Defect::kMovesWithoutLimit)) {
          room -= std::min(room, d.size);
          moved_bytes += d.size;
          const int left = defect_ == Defect::kMovesKeepVisits ? d.visits : d.visits / 2;
          disk.push_back({d.key, d.size, left, d.was_visited, d.fresh_until, d.filled});
        } else {
          ++dropped;
          admitted_dropped += d.filled ? 0 : 1;
          admitted_visited += !d.filled && d.was_visited ? 1 : 0;
        }
      }
    }
  }

  InMemory* in_memory(std::uint64_t id) {
    for (InMemory& m : memory) {
      if (m.key == id) return &m;
    }
    return nullptr;
  }
  OnDisk* on_disk(std::uint64_t id) {
    for (OnDisk& d : disk) {
      if (d.key == id) return &d;
    }
    return nullptr;
  }
  std::uint64_t disk_bytes() const {
    std::uint64_t bytes = 0;
    for (const OnDisk& d : disk) bytes += d.size;
    return bytes;
  }

  ProbationCacheSettings settings_;
  Defect defect_;
  double mean_ = 0;
  std::uint64_t fetched_ = 0;
  std::set<std::uint64_t> newer_;
  std::set<std::uint64_t> older_;
};

}  // namespace encore::cache::test

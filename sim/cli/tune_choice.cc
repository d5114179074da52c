#include "sim/cli/tune_choice.h"

#include <algorithm>
#include <cmath>

namespace encore::sim {
namespace {

// Runs with this share of the best hit ratio count as equal in hits: the fewest writes decide among
// them, and the least memory among those that write so much more at most.
constexpr double kHitsShare = 0.995;
constexpr double kWritesShare = 1.02;
// Second-hit pays if it loses no more than this of the hit ratio ...
constexpr double kHitsLostMax = 0.005;
// ... or if it saves this share of the writes and loses no more than that.
constexpr double kWritesSavedMin = 0.3;
constexpr double kHitsLostForWritesMax = 0.02;

}  // namespace

bool does_pay(double lost, double saved) {
  return lost <= kHitsLostMax || (saved >= kWritesSavedMin && lost <= kHitsLostForWritesMax);
}

Measured best_filter(const std::vector<Measured>& all) {
  double best = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    best = std::max(best, all[i].hits);
  }
  double writes = INFINITY;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].hits >= kHitsShare * best) {
      writes = std::min(writes, static_cast<double>(all[i].bytes_written));
    }
  }
  return *std::find_if(all.begin() + 1, all.end(), [&](const Measured& one) {
    return one.hits >= kHitsShare * best &&
           static_cast<double>(one.bytes_written) <= kWritesShare * writes;
  });
}

std::size_t next_to(const std::vector<Measured>& all, std::size_t chosen, const Costs& costs) {
  const auto distance = [&](const Measured& one) {
    return costs.any() ? cost_of(one, costs) : std::abs(one.hits - all[chosen].hits);
  };
  std::size_t next = chosen == 0 ? 1 : 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i != chosen && distance(all[i]) < distance(all[next])) next = i;
  }
  return next;
}

TuneChoice choose_one(const std::vector<Measured>& windows, const std::vector<Measured>& fprs,
                      const Costs& costs) {
  const Measured& always = windows.front();
  TuneChoice choice{.all = windows};
  for (std::size_t i = 1; i < fprs.size(); ++i) {
    const bool is_there = std::ranges::any_of(windows, [&](const Measured& one) {
      return one.window == fprs[i].window && one.fpr == fprs[i].fpr;
    });
    if (!is_there) choice.all.push_back(fprs[i]);
  }
  const auto place_of = [&](const Measured& one) {
    const auto at = std::ranges::find_if(choice.all, [&](const Measured& each) {
      return each.window == one.window && each.fpr == one.fpr;
    });
    return static_cast<std::size_t>(at - choice.all.begin());
  };
  const auto pays = [&](const Measured& one) {
    const Balance balance = balance_of(always, one);
    return does_pay(balance.lost.value, balance.saved.value);
  };
  const Measured best = best_filter(fprs);
  if (costs.any()) {
    choice.chosen = cheapest(choice.all, costs);
    choice.runner_up = next_to(choice.all, choice.chosen, costs);
  } else if (!pays(best)) {
    choice.runner_up = place_of(best);
  } else {
    choice.chosen = place_of(best);
    std::vector<Measured> others = fprs;
    std::erase_if(others, [&](const Measured& one) { return one.fpr == best.fpr; });
    const Measured second = best_filter(others);
    choice.runner_up = pays(second) ? place_of(second) : 0;
  }
  return choice;
}

}  // namespace encore::sim

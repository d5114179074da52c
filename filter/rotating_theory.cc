// The half of RotatingBloomFilter that knows its false-positive rate.
#include <algorithm>

#include "filter/rotating_bloom_filter.h"

namespace encore::filter {
namespace {

// Theory receives insertions after this share of a generation's capacity, if it is read at every
// request: the generations' overlap moves slowly.
constexpr std::uint64_t kTellingsACycle = 32;

// The share of the current generation's p that others answer as well, where it adds so much to
// theirs.
double shared_of(double current, double added) {
  return current <= 0 ? 0 : std::clamp(1 - added / current, 0.0, 1.0);
}

}  // namespace

std::uint32_t RotatingBloomFilter::joint(std::uint32_t first) const {
  std::uint32_t end = first;
  while (end < generations_.size() && end - first < kJointMax &&
         generations_[end].bank.memory == generations_[first].bank.memory) {
    ++end;
  }
  return end - first;
}

void RotatingBloomFilter::restart_theory() {
  const FilterParameters& parameters = generations_.front().parameters;
  theory_ =
      RingTheory({.shape = parameters.shape(),
                  .capacity = static_cast<double>(std::min(parameters.capacity, parameters.bits)),
                  .generations = options_.generations,
                  .refresh = options_.refresh});
  answered_.assign(options_.generations > 2 ? theory_.older_sets() : 0, 0.0);
  followed_ = {.refreshes = refreshes_};
}

// Returns the insertions into the current generation since theory was last updated, by the sets of
// older generations that answered. For a pair the fast path counts no more than is needed here.
std::vector<double> RotatingBloomFilter::untold() const {
  if (!answered_.empty()) return answered_;
  const auto inserted = static_cast<double>(generations_.front().insertions - followed_.insertions);
  // A key that came from a generation of another make is as good as new.
  const auto refreshed = joint(0) < 2 ? 0.0 : static_cast<double>(refreshes_ - followed_.refreshes);
  return {inserted - refreshed, refreshed};
}

// Theory of a loaded filter goes on from where it was saved; where that is not known, from the
// bits.
void RotatingBloomFilter::resume_theory(const std::vector<double>& positions) {
  if (!positions.empty()) {
    theory_.set_positions(positions);
  } else {
    std::vector<const GenerationBits*> together;
    for (std::uint32_t i = 0; i < joint(0); ++i) {
      together.push_back(&generations_[i].bits);
    }
    // Generations with other parameters set nothing here.
    std::vector<double> shares = shares_set_in_all(together, UINT64_MAX);
    shares.resize(theory_.positions().size(), 0.0);
    theory_.set_shares_in_all(std::move(shares));
  }
  followed_ = {.insertions = generations_.front().insertions,
               .refreshes = refreshes_,
               .older = theory_.fpr_older()};
}

RingTheory RotatingBloomFilter::theory_now() const {
  RingTheory theory = theory_;
  theory.insert(untold());
  return theory;
}

void RotatingBloomFilter::follow() {
  theory_.insert(untold());
  std::ranges::fill(answered_, 0.0);
  const Generation& current = generations_.front();
  const double own = current.bank.curve->at(static_cast<double>(current.insertions));
  const double older = theory_.fpr_older();
  followed_ = {.insertions = current.insertions,
               .refreshes = refreshes_,
               .older = older,
               .shared = shared_of(own, theory_.fpr() - older)};
}

// p of the generations that theory takes together, and of the others, adopted ones included.
double RotatingBloomFilter::with_independent(double fpr) const {
  for (std::size_t i = joint(0); i < generations_.size(); ++i) {
    const double other =
        generations_[i].bank.curve->at(static_cast<double>(generations_[i].insertions));
    fpr += (1 - fpr) * other;
  }
  return adopted_.with_theory(fpr);
}

double RotatingBloomFilter::fpr_theory() const { return with_independent(theory_now().fpr()); }

double RotatingBloomFilter::follow_theory() {
  const Generation& current = generations_.front();
  const std::uint64_t untold_keys = current.insertions - followed_.insertions;
  if (untold_keys * kTellingsACycle >=
      std::min(current.parameters.capacity, current.parameters.bits)) {
    follow();
  }
  const double own = current.bank.curve->at(static_cast<double>(current.insertions));
  return with_independent(followed_.older + own * (1 - followed_.shared));
}

// p of the generations [first, end) by the bits.
double RotatingBloomFilter::fpr_from_bits(std::uint32_t first, std::uint32_t end,
                                          std::uint64_t lines_max) const {
  double fpr = 0;
  std::vector<const GenerationBits*> together;
  while (first < end) {
    const std::uint32_t next = std::min(end, first + joint(first));
    together.clear();
    for (; first < next; ++first) {
      together.push_back(&generations_[first].bits);
    }
    fpr += (1 - fpr) * filter::fpr_from_bits(together, lines_max);
  }
  return fpr;
}

double RotatingBloomFilter::fpr_from_bits(std::uint64_t lines_max) const {
  return adopted_.with_bits(
      fpr_from_bits(0, static_cast<std::uint32_t>(generations_.size()), lines_max));
}

RotatingBloomFilter::BitsReading RotatingBloomFilter::read_bits(std::uint64_t lines_max) const {
  const double current = current_fpr_from_bits(lines_max);
  const double older = adopted_.with_bits(
      fpr_from_bits(1, static_cast<std::uint32_t>(generations_.size()), lines_max));
  return {.older = older, .shared = shared_of(current, fpr_from_bits(lines_max) - older)};
}

double RotatingBloomFilter::current_fpr_from_bits(std::uint64_t lines_max) const {
  return fpr_from_bits(0, 1, lines_max);
}

}  // namespace encore::filter

// Theory of Bloom filters: false-positive rates, fill, sizing, intervals. Pure functions,
// thread-safe. Symbols: m bits, k hashes, n distinct keys inserted, c insertions a generation of a
// rotating filter, p the probability that a key never inserted tests positive. Counts that may be
// an expectation are doubles.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "filter/parameters.h"

namespace encore::filter {

// --- one filter ---------------------------------------------------------------------------------

// p after n distinct keys, by layout:
//   classic      (1 - (1 - 1/m)^(kn))^k                                        Bloom 1970
//   partitioned  (1 - (1 - k/m)^n)^k, slices of whole bits                      Almeida et al. 2007
//   blocked      sum_j Poisson(j; 512 n/m) E[(X_j/512)^k], X_j the bits that kj throws set
//   split        sum_j Poisson(j; 512 n/m) (1 - (1 - 1/64)^j)^8
// With few lines j is binomial. Small classic filters lie above their formula: fpr_exact().
double fpr(const FilterShape& shape, double keys);
// As published for blocks of any size (Putze et al. 2007), with the power of the expected fill in
// place of the expected power: sum_j Poisson(j; B n/m) (1 - (1 - 1/B)^(kj))^k. Too low: by 1.2 %
// for 512 bits at k = 7, by more for smaller blocks (exact_theory.h). Why fpr() differs:
// docs/decisions/0330.
double fpr_blocked(const FilterShape& shape, double keys, double block_bits);
// Split with another number and width of words: `words` words of `word_bits` bits in one line.
struct SplitLine {
  std::uint32_t words = 8;
  double word_bits = 64;
};
double fpr_split(double bits, double keys, SplitLine line);
// (1 - e^(-kn/m))^k, the usual approximation of the classic formula.
double fpr_exponential(const FilterShape& shape, double keys);
// Without approximation: the expectation of (X/m)^k over the distribution of the set bits X (Bose
// et al. 2008), by a recurrence that has only positive terms (exact_theory.h). Nothing where it
// would take more than about a second: there the formula is exact to six digits.
std::optional<double> fpr_exact(const FilterShape& shape, std::uint64_t keys);
// Mean of p(i) over i = 0 .. keys-1: what a filter shows that is measured while it fills.
double fpr_incremental(const FilterShape& shape, double keys);
// The same mean of fpr_exact(i). Nothing: as there.
std::optional<double> fpr_incremental_exact(const FilterShape& shape, std::uint64_t keys);

// The block experiment: of `events`, a share is one-off blocks, the others draw one of
// `reused_blocks`. Expected distinct blocks after t events, and the mean of p over the fill that
// the one-off blocks meet (the reused ones fill the filter early, so it lies above the plain mean).
struct BlockExperiment {
  double events = 0;
  double reused_blocks = 0;
  double one_off_share = 0;  // 0..1
};
double distinct_blocks(const BlockExperiment& experiment, double events);
double fpr_weighted_incremental(const FilterShape& shape, const BlockExperiment& experiment);

// --- from the bits ------------------------------------------------------------------------------

// Expected number of set bits after n keys, and (classic) its variance
// m e^-a (1 - (1 + a) e^-a), a = kn/m.
double expected_set_bits(const FilterShape& shape, double keys);
double set_bits_variance(const FilterShape& shape, double keys);
// (X/m)^k: classic and, nearly, partitioned. Other layouts need the lines themselves.
double fpr_from_fill(const FilterShape& shape, double set_bits);
// n* = -(m/k) ln(1 - X/m) (Swamidass and Baldi 2007); infinite for a filter that is all ones.
double distinct_from_fill(const FilterShape& shape, double set_bits);

// --- rotating filters ---------------------------------------------------------------------------

// Returns the number of keys with the effect of `counted` insertions. A key counted as inserted was
// judged new, so it set at least one bit: d i_eff = di / (1 - p(i_eff)). Not valid if every
// presented key is inserted.
double effective_insertions(const FilterShape& shape, double counted);

enum class Counting : std::uint8_t { kPlain, kEffective };

// A ring of `generations` (2: the pair), each rotated after `capacity` insertions.
struct Ring {
  FilterShape shape;  // shape of one generation
  double capacity = 0;
  std::uint32_t generations = 2;
  Counting counting = Counting::kPlain;
  bool refresh = true;
};
// p with i insertions in the current generation and full older ones. With refresh, of keys that do
// not come again: 1 - (1 - p(i)) (1 - p(c))^(G-1). Keys that do come again make generations alike
// and p lower, so that this is the upper bound that sizes are taken from. Without refresh keys
// avoid what is set (ring_theory.h): p is a little higher, up to (G-1) p(c) + p(i) at k = 1; their
// insertions always count as effective. Generations more than kJointMax apart: independent.
double ring_fpr(const Ring& ring, double insertions);
// Over a cycle: at i = 0, the mean over i = 0 .. c-1, and the worst case, i = c.
struct CycleFpr {
  double low = 0;
  double mean = 0;
  double high = 0;
};
CycleFpr ring_cycle(const Ring& ring);
// The share of a popular key's second requests that come too late, at distance d insertions:
// 0 up to c (G-1), then linear, 1 from c G on.
double forgotten_share(const Ring& ring, double distance);

// p of one shape at any fill up to a maximum, from a table of 129 points: relative error below
// 0.1 % at the upper half of the fill. For callers that ask for every request.
class FprCurve {
 public:
  FprCurve() = default;
  FprCurve(const FilterShape& shape, double keys_max, Counting counting);
  double at(double keys) const;

 private:
  std::vector<double> points_;
  double step_ = 1;
};

// --- sizing -------------------------------------------------------------------------------------

struct Sizing {
  std::uint64_t bits = 0;
  std::uint32_t hashes = 0;
  double fpr = 0;       // predicted for these
  bool reached = true;  // false: no filter of up to kBitsMax does
};
struct SizingGoal {
  double keys = 0;
  double fpr = 0;  // 0 < fpr < 1
};
// Classic closed form: bits = ceil(-n ln p / (ln 2)^2), hashes = the better of the two integers
// next to (m/n) ln 2. `hashes_ceiling` is the k that tables print, ceil((m/n) ln 2).
struct ClassicSizing {
  std::uint64_t bits = 0;
  std::uint32_t hashes = 0;
  std::uint32_t hashes_ceiling = 0;
};
ClassicSizing size_classic(const SizingGoal& goal);
// The smallest filter of the layout that meets the goal, by numeric inversion: with the given k, or
// with the best one. Bits are rounded up as checked() does.
Sizing size_with_hashes(Layout layout, const SizingGoal& goal, std::uint32_t hashes);
Sizing size_for(Layout layout, const SizingGoal& goal);
// The k with the lowest p at `keys` (always 8 for split). `shape.hashes` is ignored.
std::uint32_t best_hashes(const FilterShape& shape, double keys);
// The most keys with p <= fpr.
double capacity_for(const FilterShape& shape, double fpr);
// The usual closed form for a classic filter with its best k: m (ln 2)^2 / -ln p.
double capacity_classic(std::uint64_t bits, double fpr);
// The half-full point, bits ln 2 / hashes: the capacity where none is given.
std::uint64_t half_full_capacity(const FilterShape& shape);

// One generation of a ring whose FPR never exceeds goal.fpr with goal.keys insertions a generation.
// With refresh each generation gets 1 - (1 - P)^(1/G), for independent generations are the worst
// case. Without it each gets P/G, for at most one of them may answer for a key. hashes 0: the best.
struct RingGoal {
  Layout layout = Layout::kSplit;
  double capacity = 0;
  double fpr_worst = 0;
  std::uint32_t generations = 2;
  std::uint32_t hashes = 0;
  bool refresh = true;
};
Sizing size_ring(const RingGoal& goal);
// Bits over all generations for each key of a guaranteed window: the last (G-1) c insertions are
// remembered for certain, so capacity is window/(G-1).
struct WindowCost {
  double bits_per_key = 0;
  std::uint32_t hashes = 0;
  bool reached = true;
};
WindowCost window_cost(Layout layout, std::uint32_t generations, double fpr_worst);

// --- measured against theory --------------------------------------------------------------------

struct Interval {
  double low = 0;
  double high = 1;
};
struct Proportion {
  std::uint64_t hits = 0;
  std::uint64_t trials = 0;
};
// Wilson's score interval, z standard deviations wide (1.96: 95 %). (0, 1) without trials.
Interval wilson_interval(const Proportion& proportion, double z = 1.96);

}  // namespace encore::filter

// Every number that is known of the formulas, from papers, lecture notes and simulation.
#include "filter/theory.h"

#include <array>
#include <cmath>

#include "tests/catch.h"

namespace encore::filter {
namespace {

FilterShape classic(std::uint64_t bits, std::uint32_t hashes) {
  return {Layout::kClassic, bits, hashes};
}

// Equal when written with as many digits as `digits_unit` has: half a unit of the last digit.
bool prints_as(double value, double printed, double digits_unit) {
  return std::abs(value - printed) <= 0.5000001 * digits_unit;
}

}  // namespace

TEST_CASE("the exact rate of Bose et al. lies above the classic formula, to the digit",
          "[filter][theory]") {
  struct Row {
    std::uint64_t keys;
    std::uint64_t bits;
    std::uint32_t hashes;
    double exact;
    double classic;
  };
  for (const Row& row :
       {Row{10, 100, 4, 0.012276085, 0.012007710}, Row{10, 100, 7, 0.008936312, 0.008394808},
        Row{50, 512, 7, 0.007430423, 0.007337312}, Row{20, 64, 2, 0.219526706, 0.218437704},
        Row{8, 64, 6, 0.023809225, 0.022270492}}) {
    CAPTURE(row.keys, row.bits, row.hashes);
    const auto exact = fpr_exact(classic(row.bits, row.hashes), row.keys);
    REQUIRE(exact);
    CHECK(prints_as(*exact, row.exact, 1e-9));
    CHECK(prints_as(fpr(classic(row.bits, row.hashes), static_cast<double>(row.keys)), row.classic,
                    1e-9));
  }
  CHECK_FALSE(fpr_exact(classic(800'000'000, 7), 80'000'000));
}

TEST_CASE("the worked example of 16 bits, 4 keys and 3 hashes", "[filter][theory]") {
  CHECK(prints_as(fpr_exponential(classic(16, 3), 4), 0.147, 1e-3));
  CHECK(prints_as(fpr(classic(16, 3), 4), 0.1566, 1e-4));
  CHECK(prints_as(fpr_exact(classic(16, 3), 4).value(), 0.16496, 1e-5));
}

TEST_CASE("the sizes and hash counts for one classic filter", "[filter][theory]") {
  struct Row {
    double keys;
    double fpr;
    std::uint64_t bits;
    std::uint32_t ceiling;
    std::uint32_t best;
  };
  for (const Row& row :
       {Row{1000, 0.1, 4793, 4, 3}, Row{1000, 0.05, 6236, 5, 4}, Row{1000, 0.01, 9586, 7, 7},
        Row{1000, 0.005, 11028, 8, 8}, Row{1000, 0.001, 14378, 10, 10},
        Row{1000, 0.0005, 15821, 11, 11}, Row{1000, 0.0001, 19171, 14, 13},
        Row{3000, 0.01, 28756, 7, 7}, Row{18232, 0.001, 262133, 10, 10},
        Row{1e6, 0.01, 9585059, 7, 7}, Row{1e6, 0.001, 14377588, 10, 10}}) {
    CAPTURE(row.keys, row.fpr);
    const ClassicSizing sizing = size_classic({row.keys, row.fpr});
    CHECK(sizing.bits == row.bits);
    CHECK(sizing.hashes_ceiling == row.ceiling);
    CHECK(sizing.hashes == row.best);
    CHECK(capacity_classic(sizing.bits, row.fpr) == Approx(row.keys).epsilon(1e-3));
  }
}

TEST_CASE("classic rates by bits a key and number of hashes", "[filter][theory]") {
  constexpr double kKeys = 80000;
  const std::array<double, 5> at_5{.181, .109, .092, .092, .101};
  for (std::uint32_t k = 1; k <= at_5.size(); ++k) {
    CHECK(prints_as(fpr(classic(400'000, k), kKeys), at_5[k - 1], 1e-3));
  }
  const std::array<double, 8> at_10{.0952, .0329, .0174, .0118, .00943, .00844, .00819, .00846};
  for (std::uint32_t k = 1; k <= at_10.size(); ++k) {
    CHECK(prints_as(fpr(classic(800'000, k), kKeys), at_10[k - 1], k < 5 ? 1e-4 : 1e-5));
  }
  CHECK(best_hashes(classic(1'600'000, 0), kKeys) == 14);
  CHECK(prints_as(fpr(classic(1'600'000, 14), kKeys), 6.71e-5, 1e-7));
  // Akamai's filter of 100 MB for 80 million objects.
  CHECK(prints_as(fpr(classic(800'000'000, 7), 80e6), .00819, 1e-5));
  // Squid's cache digest: 5 bits an entry, k = 4.
  CHECK(prints_as(fpr(classic(500'000, 4), 100'000), .092, 1e-3));
}

TEST_CASE("small whole-bit filters", "[filter][theory]") {
  struct Row {
    std::uint64_t bits;
    std::uint32_t hashes;
    double fpr;
  };
  for (const Row& row : {Row{5, 3, .0918}, Row{7, 3, .0423}, Row{10, 5, .0094}, Row{12, 5, .0046},
                         Row{15, 8, .0009}, Row{16, 10, .0005}, Row{20, 10, .0001}}) {
    CAPTURE(row.bits, row.hashes);
    CHECK(prints_as(fpr_exponential(classic(row.bits * 100'000, row.hashes), 100'000), row.fpr,
                    1e-4));
  }
}

TEST_CASE("the full filter and the filling filter of the lecture's table", "[filter][theory]") {
  const std::array<double, 8> full{.0952, .0329, .0174, .0118, .0094, .0084, .0082, .0085};
  const std::array<double, 9> mean{.0484, .0115, .0048, .0027, .0019, .0015, .0013, .0013, .0013};
  for (std::uint32_t k = 1; k <= mean.size(); ++k) {
    CAPTURE(k);
    if (k <= full.size()) {
      CHECK(prints_as(fpr(classic(800'000, k), 80000), full[k - 1], 1e-4));
    }
    CHECK(prints_as(fpr_incremental(classic(800'000, k), 80000), mean[k - 1], 1e-4));
  }
}

TEST_CASE("the mean while filling is the same by terms and by the rule", "[filter][theory]") {
  for (const Layout layout : {Layout::kClassic, Layout::kSplit}) {
    const FilterShape shape{layout, 51'200, 8};
    double sum = 0;
    for (int i = 0; i < 5000; ++i) {
      sum += fpr(shape, i);
    }
    CHECK(fpr_incremental(shape, 5000) == Approx(sum / 5000).epsilon(1e-6));
  }
}

TEST_CASE("the block experiment: the plain mean and the one weighted by fill", "[filter][theory]") {
  const std::array<double, 8> plain{4.834, 1.149, .475, .269, .187, .150, .134, .129};
  const std::array<double, 8> weighted{5.016, 1.206, .501, .284, .198, .159, .142, .137};
  const BlockExperiment experiment{.events = 100'000, .reused_blocks = 5000, .one_off_share = .75};
  const double blocks = distinct_blocks(experiment, experiment.events);
  CHECK(blocks == Approx(80'000).epsilon(1e-3));
  for (std::uint32_t k = 1; k <= plain.size(); ++k) {
    CAPTURE(k);
    const FilterShape shape = classic(800'000, k);
    CHECK(100 * fpr_incremental(shape, blocks) == Approx(plain[k - 1]).epsilon(0.004));
    CHECK(100 * fpr_weighted_incremental(shape, experiment) ==
          Approx(weighted[k - 1]).epsilon(0.004));
  }
}

TEST_CASE("the rotating pair over a cycle", "[filter][theory]") {
  struct Row {
    std::uint32_t hashes;
    CycleFpr cycle;
  };
  for (const Row& row : {Row{4, {.011813, .014477, .023487}}, Row{7, {.008194, .009526, .016320}},
                         Row{8, {.008455, .009738, .016840}}}) {
    CAPTURE(row.hashes);
    const CycleFpr cycle = ring_cycle({.shape = classic(800'000, row.hashes), .capacity = 80'000});
    CHECK(prints_as(cycle.low, row.cycle.low, 1e-6));
    CHECK(prints_as(cycle.mean, row.cycle.mean, 1e-6));
    CHECK(prints_as(cycle.high, row.cycle.high, 1e-6));
  }
}

TEST_CASE("insertions that are counted as new are worth a little more", "[filter][theory]") {
  Ring ring{.shape = classic(400'000, 7), .capacity = 40'000};
  const double plain = ring_cycle(ring).mean;
  ring.counting = Counting::kEffective;
  CHECK(ring_cycle(ring).mean / plain == Approx(1.006).margin(0.0005));
  // The counted number is e - integral of p: integrate the solution back.
  const double e = effective_insertions(ring.shape, 40'000);
  CHECK(e - fpr_incremental(ring.shape, e) * e == Approx(40'000).epsilon(1e-6));
}

TEST_CASE("a ring of G generations generalises the pair", "[filter][theory]") {
  const Ring ring{.shape = classic(800'000, 7), .capacity = 80'000, .generations = 4};
  const double p = fpr(ring.shape, 80'000);
  CHECK(ring_fpr(ring, 0) == Approx(1 - std::pow(1 - p, 3)));
  CHECK(ring_fpr(ring, 80'000) == Approx(1 - std::pow(1 - p, 4)));
  CHECK(forgotten_share(ring, 240'000) == 0);
  CHECK(forgotten_share(ring, 280'000) == Approx(0.5));
  CHECK(forgotten_share(ring, 400'000) == 1);
}

TEST_CASE("the layouts at 10 and 16 bits a key", "[filter][theory]") {
  struct Row {
    std::uint64_t bits_per_key;
    std::uint32_t hashes;
    double classic;
    double partitioned;
    double blocked;
  };
  for (const Row& row :
       {Row{10, 7, .0081937, .0081941, .0095712}, Row{16, 11, .0004587, .0004587, .0008596},
        Row{16, 8, .0005745, .0005745, .0008728}}) {
    CAPTURE(row.bits_per_key, row.hashes);
    const std::uint64_t bits = row.bits_per_key * 80'000;
    CHECK(prints_as(fpr({Layout::kClassic, bits, row.hashes}, 80'000), row.classic, 1e-7));
    CHECK(prints_as(fpr({Layout::kPartitioned, bits, row.hashes}, 80'000), row.partitioned, 1e-7));
    CHECK(prints_as(fpr_blocked({Layout::kBlocked, bits, row.hashes}, 80'000, 512), row.blocked,
                    1e-7));
  }
}

TEST_CASE("a hopelessly overfull filter answers yes, and theory says so at once",
          "[filter][theory]") {
  for (const Layout layout : {Layout::kBlocked, Layout::kSplit}) {
    CHECK(fpr({layout, 512, 8}, 1e12) == 1);
    CHECK(fpr({layout, 1024, 8}, 1e15) == 1);
  }
}

TEST_CASE("split with words of 64 and 32 bits, and blocked with its best k", "[filter][theory]") {
  struct Row {
    double bits_per_key;
    double split_64;
    double split_32;
    double blocked;
    double blocked_unit;
    std::uint32_t blocked_hashes;
  };
  for (const Row& row :
       {Row{10, .01049, .01265, .009571, 1e-6, 7}, Row{12, .00422, .00542, .004069, 1e-6, 8},
        Row{16, .00091, .00132, .000825, 1e-6, 10}}) {
    CAPTURE(row.bits_per_key);
    const double bits = 80'000 * row.bits_per_key;
    CHECK(prints_as(fpr_split(bits, 80'000, {8, 64}), row.split_64, 1e-5));
    CHECK(prints_as(fpr_split(bits, 80'000, {8, 32}), row.split_32, 1e-5));
    const FilterShape blocked{Layout::kBlocked, static_cast<std::uint64_t>(bits),
                              row.blocked_hashes};
    const auto published = [&](std::uint32_t hashes) {
      return fpr_blocked({Layout::kBlocked, blocked.bits, hashes}, 80'000, 512);
    };
    CHECK(prints_as(published(row.blocked_hashes), row.blocked, row.blocked_unit));
    CHECK(published(row.blocked_hashes) < published(row.blocked_hashes - 1));
    CHECK(published(row.blocked_hashes) < published(row.blocked_hashes + 1));
    // The expectation lies above the published formula, the more so the more hashes there are.
    CHECK(fpr(blocked, 80'000) > 1.01 * row.blocked);
  }
}

TEST_CASE("a small filter's rate is the expected power of its fill, not the power of the expected",
          "[filter][theory]") {
  // Two keys of two hashes in two cells, by hand: a key sets one cell or both, each with 1/2.
  CHECK(fpr_exact(classic(2, 2), 1).value() == Approx(0.5 * 0.25 + 0.5));
  CHECK(fpr_exact(classic(2, 2), 2).value() == Approx(0.125 * 0.25 + 0.875));
  CHECK(fpr_incremental_exact(classic(2, 2), 3).value() == Approx((0 + 0.625 + 0.90625) / 3));
  CHECK(fpr_exact(classic(1, 5), 1).value() == 1);
  // One line is a classic filter of 512 bits.
  for (const std::uint32_t hashes : {1U, 7U, 33U}) {
    CHECK(fpr({Layout::kBlocked, 512, hashes}, 20) ==
          Approx(fpr_exact(classic(512, hashes), 20).value()).epsilon(1e-9));
  }
}

TEST_CASE("the memory of a guaranteed window, pair and ring of eight", "[filter][theory]") {
  struct Row {
    std::uint32_t generations;
    double fpr;
    double bits_per_key;
    std::uint32_t hashes;
  };
  for (const Row& row : {Row{2, .01, 22.06, 8}, Row{2, .001, 31.64, 11}, Row{8, .01, 15.90, 10},
                         Row{8, .001, 21.38, 13}}) {
    CAPTURE(row.generations, row.fpr);
    const WindowCost cost = window_cost(Layout::kClassic, row.generations, row.fpr);
    CHECK(prints_as(cost.bits_per_key, row.bits_per_key, 1e-2));
    CHECK(cost.hashes == row.hashes);
  }
}

TEST_CASE("a size found by inversion meets its goal and the next smaller one does not",
          "[filter][theory]") {
  for (const Layout layout :
       {Layout::kClassic, Layout::kPartitioned, Layout::kBlocked, Layout::kSplit}) {
    CAPTURE(to_string(layout));
    const SizingGoal goal{20'000, 0.004};
    const Sizing sizing = size_for(layout, goal);
    const FilterShape shape{layout, sizing.bits, sizing.hashes};
    CHECK(fpr(shape, goal.keys) <= goal.fpr);
    CHECK(sizing.fpr == fpr(shape, goal.keys));
    CHECK(sizing.bits == checked({.layout = layout,
                                  .bits = sizing.bits,
                                  .hashes = sizing.hashes,
                                  .capacity = 1,
                                  .seed = {}})
                             ->bits);
    const std::uint64_t unit = layout == Layout::kClassic       ? 1
                               : layout == Layout::kPartitioned ? sizing.hashes
                                                                : kLineBits;
    CHECK(fpr({layout, sizing.bits - unit, sizing.hashes}, goal.keys) > goal.fpr);
    const double capacity = capacity_for(shape, goal.fpr);
    CHECK(capacity >= goal.keys);
    CHECK(fpr(shape, capacity) <= goal.fpr);
    CHECK(fpr(shape, capacity + 1) > goal.fpr);
  }
}

TEST_CASE("a ring sized for a worst case keeps it at the end of a cycle", "[filter][theory]") {
  const Sizing sizing = size_ring({.layout = Layout::kSplit,
                                   .capacity = 50'000,
                                   .fpr_worst = .01,
                                   .generations = 2,
                                   .hashes = 0});
  const Ring ring{.shape = {Layout::kSplit, sizing.bits, sizing.hashes}, .capacity = 50'000};
  CHECK(ring_fpr(ring, 50'000) <= .01);
  CHECK(ring_fpr(ring, 50'000) > .0099);
}

TEST_CASE("without refresh the generations of a ring avoid each other, and sizes allow for it",
          "[filter][theory]") {
  // One hash: an insertion is a position, and no position is set in two generations.
  Ring ring{.shape = classic(800'000, 1), .capacity = 80'000, .refresh = false};
  for (const std::uint32_t generations : {2U, 3U, 8U}) {
    CAPTURE(generations);
    ring.generations = generations;
    const CycleFpr cycle = ring_cycle(ring);
    CHECK(cycle.low == Approx(.1 * (generations - 1)).epsilon(5e-4));
    CHECK(cycle.mean == Approx(.1 * (generations - .5)).epsilon(5e-4));
    CHECK(cycle.high == Approx(.1 * generations).epsilon(5e-4));
    CHECK(ring_fpr(ring, 40'000) == Approx(.1 * (generations - .5)).epsilon(5e-4));
  }
  // Between independent and disjoint; of lines the fuller ones refuse more keys as well, which
  // makes a generation better by itself.
  for (const Layout layout :
       {Layout::kClassic, Layout::kPartitioned, Layout::kBlocked, Layout::kSplit}) {
    CAPTURE(to_string(layout));
    ring = {.shape = {layout, 512'000, layout == Layout::kSplit ? 8U : 2U},
            .capacity = 80'000,
            .counting = Counting::kEffective,
            .refresh = false};
    const double p = fpr(ring.shape, effective_insertions(ring.shape, 80'000));
    const double high = ring_cycle(ring).high;
    const bool lines = layout == Layout::kBlocked || layout == Layout::kSplit;
    CHECK(high > (lines ? 0.99 : 1) * (1 - (1 - p) * (1 - p)));
    CHECK(high < 2 * p);
  }
  RingGoal goal{.layout = Layout::kClassic, .capacity = 80'000, .fpr_worst = .2, .hashes = 2};
  CHECK(2 * size_ring(goal).fpr > .2);
  goal.refresh = false;
  CHECK(2 * size_ring(goal).fpr <= .2);
}

TEST_CASE("distinct keys come back from the fill", "[filter][theory]") {
  const FilterShape shape = classic(1'000'000, 7);
  const double set = expected_set_bits(shape, 60'000);
  CHECK(distinct_from_fill(shape, set) == Approx(60'000).epsilon(1e-4));
  CHECK(fpr_from_fill(shape, set) == Approx(fpr(shape, 60'000)).epsilon(1e-4));
  CHECK(half_full_capacity(shape) == 99'021);
  CHECK(expected_set_bits(shape, 99'021) == Approx(500'000).epsilon(1e-4));
}

TEST_CASE("the curve follows the formula", "[filter][theory]") {
  for (const Layout layout : {Layout::kClassic, Layout::kSplit, Layout::kBlocked}) {
    const FilterShape shape{layout, 512'000, 8};
    const FprCurve curve(shape, 51'200, Counting::kPlain);
    const FprCurve effective(shape, 51'200, Counting::kEffective);
    for (double keys = 26'000; keys <= 51'200; keys += 777) {
      CHECK(curve.at(keys) == Approx(fpr(shape, keys)).epsilon(1e-3));
      CHECK(effective.at(keys) ==
            Approx(fpr(shape, effective_insertions(shape, keys))).epsilon(1e-3));
    }
    CHECK(curve.at(0) == 0);
    CHECK(curve.at(1e9) == curve.at(51'200));
  }
  CHECK(FprCurve().at(5) == 0);
}

TEST_CASE("Wilson's interval covers what it should", "[filter][theory]") {
  const Interval interval = wilson_interval({10, 1000});
  CHECK(prints_as(interval.low, .00544, 1e-5));
  CHECK(prints_as(interval.high, .01831, 1e-5));
  CHECK(wilson_interval({0, 0}).high == 1);
  CHECK(wilson_interval({0, 100}).low == 0);
  CHECK(wilson_interval({100, 100}).high == 1);
  CHECK(wilson_interval({0, 100}).high == Approx(0.0370).margin(1e-4));
}

}  // namespace encore::filter

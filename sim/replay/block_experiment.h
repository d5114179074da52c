// The block experiment (J. Plank, CS494): every event's block is looked up in a Bloom filter and
// inserted; a block that was made in this event and tests positive is a false positive. Any number
// of filters see one run of the workload: single filters or rotating pairs and rings, of any layout
// and hash. Deterministic; the functions are thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/cli/monitor.h"
#include "base/error.h"
#include "filter/parameters.h"
#include "sim/replay/block_hash.h"
#include "sim/replay/block_kinds.h"
#include "sim/workload/block_events.h"

namespace encore::sim {

// One filter under test. The seed of its hash follows from the workload's seed (the digests have
// none). Kinds other than single ignore capacity and generations, and kinds that grow ignore bits
// and hashes.
struct BlockFilter {
  filter::Layout layout = filter::Layout::kClassic;
  BlockHash hash = {};
  std::uint64_t bits = 800000;
  std::uint32_t hashes = 1;
  std::uint64_t capacity = 0;  // 0: a single filter; else the insertions a generation of the pair
  std::uint32_t generations = 2;  // size of the pair; more: a ring
  bool refresh = true;
  BlockKindOptions other = {};
  bool single_or_pair() const { return other.kind == BlockKind::kSingle; }
  bool pair() const { return capacity != 0 && single_or_pair(); }
  // True if the filter is given ready indices, see BlockHash.
  bool own_indices() const {
    return single_or_pair() && hash.own_indices(layout == filter::Layout::kClassic);
  }
};

// Tests of blocks that were not in the filter, and what came of them. `expected` and `variance`
// are the sums of p and p (1 - p) over the tests, p by the bits as they stood at each one, so
// z() is standard normal for a filter that does what it should. `theory` sums p by the formula;
// seeds differ in their bits, so that z against it comes from the spread over the seeds.
struct FprCount {
  std::uint64_t tests = 0;
  std::uint64_t false_positives = 0;
  double expected = 0;
  double variance = 0;
  double theory = 0;
  // Number of complete runs, and the sum of their (false positives - theory)^2.
  std::uint64_t runs = 0;
  double off_squares = 0;

  double measured() const { return tests == 0 ? 0 : static_cast<double>(false_positives) / mean(); }
  double by_bits() const { return tests == 0 ? 0 : expected / mean(); }
  double by_theory() const { return tests == 0 ? 0 : theory / mean(); }
  // Nothing where the tests are too few to tell: less than five false positives, or true answers,
  // are expected, and a normal distribution is not near.
  std::optional<double> z() const;
  // Against theory. Nothing: as above, or fewer runs than kRunsMin, which give no spread.
  static constexpr std::uint64_t kRunsMin = 30;
  std::optional<double> z_theory() const;
  void add(const FprCount& other);
  // The counts are those of one whole run.
  void end_run();

 private:
  double mean() const { return static_cast<double>(tests); }
};

// Blocks that a pair forgot: reused blocks that come again after a distance, in bins of a fifth of
// the capacity; the last bin is all from (G + 0.4) c on. The distance is counted in insertions into
// the filter since the block was last seen to be in the current generation.
struct ForgottenBin {
  std::uint64_t asked = 0;
  std::uint64_t forgotten = 0;
};
inline constexpr std::size_t kBinsACapacity = 5;
constexpr std::size_t forgotten_bins(std::uint32_t generations) {
  return kBinsACapacity * generations + 3;
}

struct BlockResult {
  BlockFilter filter;
  FprCount all;      // every new block
  FprCount one_off;  // the one-off blocks among them
  FprCount before_rotation;
  FprCount after_rotation;
  // Pair: of the current generation's fill, after the first rotation. Single: of the events.
  std::array<FprCount, 10> deciles{};
  std::vector<FprCount> cycles;  // by number of rotations so far; a single filter has one
  std::vector<ForgottenBin> forgotten;
  std::uint64_t old_blocks = 0;  // reused blocks that came before
  std::uint64_t called_new = 0;  // those called new; must be 0 for a single filter
  std::uint64_t insertions = 0;
  std::uint64_t rotations = 0;
  std::uint64_t filter_bytes = 0;
  std::string theory_refused;  // why theory does not hold for it; empty: it does
  std::uint64_t slices = 1;    // at the end; of a filter that grows
  double fpr_theory_end = 0;   // for a kind other than single
  std::uint64_t events = 0;    // that it rests on
  bool complete = true;        // false: the monitor stopped it

  std::vector<FprCount*> counts();
  // Adds another seed's run of the same filter.
  void add(const BlockResult& other);
};

// The effect of one event on the first filter, for a trace. `bit` reads the filter's bits (single
// classic filters only; empty otherwise).
struct BlockStep {
  bool is_new = false;
  bool found = false;
  std::span<const std::uint64_t> indices;  // empty where the filter makes them itself
  std::function<bool(std::uint64_t)> bit;
};
using BlockObserver = std::function<void(const BlockStep&)>;

// Runs the workload once over all filters. Errors: check(workload), impossible filter parameters,
// a bad hash with a layout other than classic, digests with more than 2^32 bits.
Result<std::vector<BlockResult>> run_blocks(const BlockWorkload& workload,
                                            std::span<const BlockFilter> filters,
                                            Monitor* monitor = nullptr,
                                            const BlockObserver& observer = {});

// Hands the lines of the experiment's own trace to `line`, as published: for each event "NEW 9 0 e
// ADDED 10000000 01000010", and the counts at the end. Bits are left out above 4096 of them. Ends
// where `line` says false: nobody reads it any more.
// Errors: as run_blocks(), and a filter that is no single classic one with indices of its own.
Result<BlockResult> trace_blocks(const BlockWorkload& workload, const BlockFilter& filter,
                                 const std::function<bool(std::string_view)>& line);

}  // namespace encore::sim

#include "sim/replay/block_experiment.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>
#include <variant>

#include "filter/bloom_filter.h"
#include "filter/fill_theory.h"
#include "filter/rotating_bloom_filter.h"
#include "filter/theory.h"

namespace encore::sim {
namespace {

using filter::BloomFilter;
using filter::FillTheory;
using filter::Layout;
using filter::RotatingBloomFilter;
using filter::Seen;

constexpr std::uint64_t kNever = UINT64_MAX;
// p by the bits is read again after this share of a filter's capacity: the error of a stale p
// (about k/4096 of it) is far below what any count of false positives can show. Lines of blocked
// and split filters are read by sample.
constexpr std::uint64_t kReadingsACycle = 2048;
// The overlap of a pair's generations moves slowly, and costs more to read.
constexpr std::uint64_t kReadingsAnOverlap = 16;
constexpr std::uint64_t kLinesRead = 4096;
constexpr std::uint64_t kEventsAReport = 1024;
// Sum of p (1 - p) from which on a count is near enough to normal for a z.
constexpr double kVarianceMin = 5;

// A block as the filters want it: with ready indices, or with a hash of the filter's family.
struct BlockKey {
  std::span<const std::uint64_t> indices;
  filter::HashedKey hashed;
};

// The kinds of filter behind one test-and-set.
class Subject {
 public:
  static Result<Subject> create(const BlockFilter& filter, const BlockWorkload& workload) {
    Subject subject;
    subject.parameters_ = {.layout = filter.layout,
                           .hash = filter.hash.family,
                           .bits = filter.bits,
                           .hashes = filter.hashes,
                           .capacity = filter.pair() ? filter.capacity : workload.events,
                           .seed = {}};
    if (filter.hash.family == filter::HashFamily::kXxh3 ||
        filter.hash.family == filter::HashFamily::kMurmur3 ||
        filter.hash.family == filter::HashFamily::kSiphash) {
      subject.parameters_.seed = {workload.seed, workload.seed};
    }
    if (filter.pair()) {
      // The identity hash is the filter's own hash for xxh3; others hash the bytes again.
      auto made = RotatingBloomFilter::create({.parameters = subject.parameters_,
                                               .generations = filter.generations,
                                               .refresh = filter.refresh,
                                               .identity_seed = subject.parameters_.seed,
                                               .shadow_one_in = 0},
                                              MonotonicTime{});
      if (!made) {
        return std::unexpected(made.error());
      }
      subject.parameters_ = made->options().parameters;
      subject.bloom_ = std::move(*made);
    } else if (!filter.single_or_pair()) {
      auto made = KindSubject::create(filter.other, subject.parameters_);
      if (!made) {
        return std::unexpected(made.error());
      }
      subject.bloom_ = std::move(*made);
    } else {
      auto made = BloomFilter::create(subject.parameters_);
      if (!made) {
        return std::unexpected(made.error());
      }
      subject.parameters_ = made->parameters();
      subject.bloom_ = std::move(*made);
    }
    subject.theory_ = FillTheory(subject.parameters_.shape());
    subject.reading_step_ = std::max<std::uint64_t>(
        1, std::min(subject.parameters_.capacity, filter.bits) / kReadingsACycle);
    return subject;
  }

  const filter::FilterParameters& parameters() const { return parameters_; }

  Seen test_and_set(const BlockKey& key) {
    ++presented_since_reading_;
    if (auto* pair = std::get_if<RotatingBloomFilter>(&bloom_)) {
      const std::uint64_t rotations = pair->rotations();
      const Seen seen = key.indices.empty() ? pair->test_and_set(key.hashed, MonotonicTime{})
                                            : pair->test_and_set_indices(key.indices, {});
      if (pair->rotations() != rotations) {
        presented_since_reading_ = reading_step_;
        readings_since_overlap_ = 0;
      }
      return seen;
    }
    if (auto* other = std::get_if<KindSubject>(&bloom_)) {
      return other->test_and_set(key.hashed.hash) ? Seen::kCurrent : Seen::kNew;
    }
    auto& single = std::get<BloomFilter>(bloom_);
    const bool was_there = key.indices.empty() ? single.test_and_set(key.hashed.hash)
                                               : single.test_and_set_indices(key.indices);
    return was_there ? Seen::kCurrent : Seen::kNew;
  }

  double fpr_from_bits() {
    if (presented_since_reading_ >= reading_step_) {
      presented_since_reading_ = 0;
      const auto* pair = std::get_if<RotatingBloomFilter>(&bloom_);
      const auto* other = std::get_if<KindSubject>(&bloom_);
      reading_ = pair != nullptr    ? read_pair(*pair)
                 : other != nullptr ? other->fpr_from_bits()
                                    : std::get<BloomFilter>(bloom_).fpr_from_bits();
    }
    return reading_;
  }

  // p by theory, `keys` distinct blocks having been presented so far.
  double fpr_theory(std::uint64_t keys) {
    if (auto* other = std::get_if<KindSubject>(&bloom_)) {
      return other->fpr_theory(keys);
    }
    auto* pair = std::get_if<RotatingBloomFilter>(&bloom_);
    return pair != nullptr ? pair->follow_theory() : theory_.at(keys);
  }

  std::uint64_t rotations() const {
    const auto* pair = std::get_if<RotatingBloomFilter>(&bloom_);
    return pair != nullptr ? pair->rotations() : 0;
  }
  std::uint64_t current_insertions() const {
    const auto* pair = std::get_if<RotatingBloomFilter>(&bloom_);
    return pair != nullptr ? pair->current_insertions() : 0;
  }
  std::uint64_t memory_bytes() const {
    if (const KindSubject* kind = other(); kind != nullptr) {
      return kind->memory_bytes();
    }
    const auto* pair = std::get_if<RotatingBloomFilter>(&bloom_);
    return pair != nullptr ? pair->statistics(1).memory_bytes : parameters_.bits / 8;
  }
  // Nothing for a single filter or a pair.
  const KindSubject* other() const { return std::get_if<KindSubject>(&bloom_); }
  // REQUIRES: a single classic filter.
  bool bit(std::uint64_t i) const { return std::get<BloomFilter>(bloom_).bit(i); }

 private:
  Subject() = default;
  double read_pair(const RotatingBloomFilter& pair) {
    if (readings_since_overlap_++ % kReadingsAnOverlap == 0) {
      overlap_ = pair.read_bits(kLinesRead);
    }
    return overlap_.older + (1 - overlap_.shared) * pair.current_fpr_from_bits(kLinesRead);
  }

  filter::FilterParameters parameters_;
  std::variant<std::monostate, BloomFilter, RotatingBloomFilter, KindSubject> bloom_;
  FillTheory theory_;
  std::uint64_t reading_step_ = 1;
  std::uint64_t presented_since_reading_ = kNever / 2;
  double reading_ = 0;
  std::uint64_t readings_since_overlap_ = 0;
  RotatingBloomFilter::BitsReading overlap_;
};

// One filter's run: asks the subject and keeps the counts.
class Run {
 public:
  static Result<std::unique_ptr<Run>> create(const BlockFilter& filter,
                                             const BlockWorkload& workload) {
    const bool classic = filter.layout == Layout::kClassic;
    if (filter.hash.bad != BadHash::kNone && !classic) {
      return fail("hash " + to_string(filter.hash) + " with layout " +
                  std::string(to_string(filter.layout)) + ", accepted: classic");
    }
    if (filter.hash.bad != BadHash::kNone && !filter.single_or_pair()) {
      return fail("hash " + to_string(filter.hash) + " with a " +
                  std::string(to_string(filter.other.kind)) + " filter, accepted: a good hash");
    }
    constexpr std::uint64_t kDigestBitsMax = std::uint64_t{1} << 32U;
    if (filter.own_indices() && !lists_indices(filter.hash.family) &&
        filter.bits > kDigestBitsMax) {
      return fail("hash " + to_string(filter.hash) + " with " + std::to_string(filter.bits) +
                  " bits, accepted: up to 4294967296, for its indices are 32-bit words");
    }
    auto subject = Subject::create(filter, workload);
    if (!subject) {
      return std::unexpected(subject.error());
    }
    return std::make_unique<Run>(filter, std::move(*subject), workload);
  }

  Run(const BlockFilter& filter, Subject subject, const BlockWorkload& workload)
      : subject_(std::move(subject)),
        events_(workload.events),
        told_at_(filter.pair() ? workload.reused_blocks : 0, kNever) {
    result_.filter = filter;
    result_.cycles.resize(1);
    result_.forgotten.resize(forgotten_bins(filter.generations));
    indices_.resize(filter.hashes);
  }

  // The block's indices or its hash. `shared` are indices that another run made from this block,
  // with this hash and size: a shorter list is their beginning.
  BlockKey key_of(std::span<std::uint8_t> block) {
    const BlockFilter& filter = result_.filter;
    if (filter.own_indices()) {
      fill_indices(filter.hash, block, filter.bits, indices_);
      return {.indices = indices_, .hashed = {}};
    }
    const std::string_view bytes(reinterpret_cast<const char*>(block.data()), block.size());
    const filter::FilterParameters& parameters = subject_.parameters();
    return {.indices = {},
            .hashed = {filter::hash_key(parameters.hash, parameters.seed, bytes), bytes}};
  }

  Seen step(const BlockEvents::Event& event, const BlockKey& key) {
    const std::uint64_t rotations = subject_.rotations();
    const std::uint64_t filled = subject_.current_insertions();
    FprCount test;
    if (event.is_new) {
      test.tests = 1;
      test.expected = subject_.fpr_from_bits();
      test.variance = test.expected * (1 - test.expected);
      test.theory = subject_.fpr_theory(result_.all.tests);
    }
    const Seen seen = subject_.test_and_set(key);
    if (event.is_new) {
      test.false_positives = seen == Seen::kNew ? 0 : 1;
      count_new(event, test, {rotations, filled});
    } else {
      count_old(event, seen);
    }
    const bool inserted = seen == Seen::kNew || (seen == Seen::kOlder && result_.filter.refresh);
    result_.insertions += inserted ? 1 : 0;
    // Either way its bits are all in the current generation now.
    if ((inserted || seen == Seen::kCurrent) && !event.one_off() && result_.filter.pair()) {
      told_at_[event.reused] = result_.insertions;
    }
    return seen;
  }

  BlockResult finish(std::uint64_t events) {
    result_.rotations = subject_.rotations();
    result_.filter_bytes = subject_.memory_bytes();
    result_.filter.bits = subject_.parameters().bits;
    if (const KindSubject* kind = subject_.other(); kind != nullptr) {
      result_.filter.bits = kind->bits();
      result_.filter.hashes = kind->hashes();
      result_.slices = kind->slices();
      result_.fpr_theory_end = subject_.fpr_theory(result_.all.tests);
    }
    result_.events = events;
    result_.complete = events == events_;
    for (FprCount* count : result_.counts()) {
      count->end_run();
    }
    return std::move(result_);
  }

  const BlockFilter& filter() const { return result_.filter; }
  const Subject& subject() const { return subject_; }

 private:
  struct Phase {
    std::uint64_t rotations;
    std::uint64_t filled;
  };

  void count_new(const BlockEvents::Event& event, const FprCount& test, const Phase& phase) {
    result_.all.add(test);
    if (event.one_off()) {
      result_.one_off.add(test);
    }
    if (phase.rotations >= result_.cycles.size()) {
      result_.cycles.resize(phase.rotations + 1);
    }
    result_.cycles[phase.rotations].add(test);
    (phase.rotations == 0 ? result_.before_rotation : result_.after_rotation).add(test);
    if (result_.filter.pair() && phase.rotations == 0) {
      return;
    }
    const std::uint64_t decile =
        result_.filter.pair() ? 10 * phase.filled / result_.filter.capacity
                              : 10 * (result_.old_blocks + result_.all.tests) / (events_ + 1);
    result_.deciles[std::min<std::uint64_t>(decile, 9)].add(test);
  }

  void count_old(const BlockEvents::Event& event, Seen seen) {
    ++result_.old_blocks;
    const std::uint64_t called_new = seen == Seen::kNew ? 1 : 0;
    result_.called_new += called_new;
    if (!result_.filter.pair() || told_at_[event.reused] == kNever) {
      return;
    }
    const std::uint64_t distance = result_.insertions - told_at_[event.reused];
    ForgottenBin& bin = result_.forgotten[std::min<std::uint64_t>(
        distance * kBinsACapacity / result_.filter.capacity, result_.forgotten.size() - 1)];
    ++bin.asked;
    bin.forgotten += called_new;
  }

  Subject subject_;
  BlockResult result_;
  std::vector<std::uint64_t> indices_;
  std::uint64_t events_;
  std::vector<std::uint64_t>
      told_at_;  // insertions when a reused block was last in the current one
};

// True if one list of indices serves both: the shorter list is the beginning of the longer one.
bool share_key(const BlockFilter& a, const BlockFilter& b) {
  const bool a_own = a.own_indices();
  const bool b_own = b.own_indices();
  if (a_own != b_own || a.hash.family != b.hash.family || a.hash.bad != b.hash.bad) {
    return false;
  }
  return !a_own || a.bits == b.bits;
}

}  // namespace

std::optional<double> FprCount::z() const {
  if (variance < kVarianceMin) {
    return std::nullopt;
  }
  return (static_cast<double>(false_positives) - expected) / std::sqrt(variance);
}

std::optional<double> FprCount::z_theory() const {
  if (runs < kRunsMin || variance < kVarianceMin) {
    return std::nullopt;
  }
  const auto count = static_cast<double>(runs);
  const double off = static_cast<double>(false_positives) - theory;
  const double spread = (off_squares - off * off / count) * count / (count - 1);
  // The tests alone have that much, whatever few seeds show.
  return off / std::sqrt(std::max(spread, variance));
}

void FprCount::end_run() {
  const double off = static_cast<double>(false_positives) - theory;
  runs = 1;
  off_squares = off * off;
}

void FprCount::add(const FprCount& other) {
  tests += other.tests;
  false_positives += other.false_positives;
  expected += other.expected;
  variance += other.variance;
  theory += other.theory;
  runs += other.runs;
  off_squares += other.off_squares;
}

std::vector<FprCount*> BlockResult::counts() {
  std::vector<FprCount*> all_counts = {&all, &one_off, &before_rotation, &after_rotation};
  for (FprCount& count : deciles) {
    all_counts.push_back(&count);
  }
  for (FprCount& count : cycles) {
    all_counts.push_back(&count);
  }
  return all_counts;
}

void BlockResult::add(const BlockResult& other) {
  all.add(other.all);
  one_off.add(other.one_off);
  before_rotation.add(other.before_rotation);
  after_rotation.add(other.after_rotation);
  for (std::size_t i = 0; i < deciles.size(); ++i) {
    deciles[i].add(other.deciles[i]);
  }
  cycles.resize(std::max(cycles.size(), other.cycles.size()));
  for (std::size_t i = 0; i < other.cycles.size(); ++i) {
    cycles[i].add(other.cycles[i]);
  }
  for (std::size_t i = 0; i < forgotten.size(); ++i) {
    forgotten[i].asked += other.forgotten[i].asked;
    forgotten[i].forgotten += other.forgotten[i].forgotten;
  }
  old_blocks += other.old_blocks;
  called_new += other.called_new;
  insertions += other.insertions;
  rotations += other.rotations;
  events += other.events;
  complete = complete && other.complete;
}

Result<std::vector<BlockResult>> run_blocks(const BlockWorkload& workload,
                                            std::span<const BlockFilter> filters, Monitor* monitor,
                                            const BlockObserver& observer) {
  if (auto fine = check(workload); !fine) {
    return std::unexpected(fine.error());
  }
  std::vector<std::unique_ptr<Run>> runs;
  for (const BlockFilter& filter : filters) {
    auto run = Run::create(filter, workload);
    if (!run) {
      return std::unexpected(run.error());
    }
    runs.push_back(std::move(*run));
  }
  // The run whose key a run uses: the one with the most hashes among those that can share one.
  std::vector<std::size_t> lender(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    lender[i] = i;
    for (std::size_t j = 0; j < runs.size(); ++j) {
      const bool longer = filters[j].hashes > filters[lender[i]].hashes;
      const bool earlier = filters[j].hashes == filters[lender[i]].hashes && j < lender[i];
      if (share_key(filters[i], filters[j]) && (longer || earlier)) {
        lender[i] = j;
      }
    }
  }
  BlockEvents events(workload);
  std::vector<BlockKey> keys(runs.size());
  std::uint64_t done = 0;
  // An event may be a block of a megabyte for many filters: each one looks.
  for (; done < workload.events && (monitor == nullptr || !monitor->stopped()); ++done) {
    const BlockEvents::Event event = events.next();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (lender[i] == i) {
        keys[i] = runs[i]->key_of(event.block);
      }
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
      BlockKey key = keys[lender[i]];
      key.indices = key.indices.first(std::min<std::size_t>(key.indices.size(), filters[i].hashes));
      const Seen seen = runs[i]->step(event, key);
      if (i == 0 && observer) {
        observer({.is_new = event.is_new,
                  .found = seen != Seen::kNew,
                  .indices = key.indices,
                  .bit = [&](std::uint64_t bit) { return runs[0]->subject().bit(bit); }});
      }
    }
    if (monitor != nullptr && (done + 1) % kEventsAReport == 0) {
      monitor->done += kEventsAReport;
    }
  }
  std::vector<BlockResult> results;
  for (const auto& run : runs) {
    results.push_back(run->finish(done));
  }
  return results;
}

Result<BlockResult> trace_blocks(const BlockWorkload& workload, const BlockFilter& filter,
                                 const std::function<bool(std::string_view)>& line) {
  if (filter.layout != Layout::kClassic || filter.pair() || !filter.own_indices()) {
    return fail("a trace of a filter other than a single classic one with a digest or a bad hash");
  }
  constexpr std::uint64_t kBitsShown = 4096;
  std::string text;
  Monitor monitor;
  const auto observer = [&](const BlockStep& step) {
    text = step.is_new ? "NEW" : "OLD";
    std::array<char, 32> field{};
    for (const std::uint64_t index : step.indices) {
      std::snprintf(field.data(), field.size(), " %llx", static_cast<unsigned long long>(index));
      text += field.data();
    }
    text += step.found ? " FOUND" : " ADDED";
    for (std::uint64_t i = 0; filter.bits <= kBitsShown && i < filter.bits; ++i) {
      text += i % 8 == 0 ? " " : "";
      text += step.bit(i) ? '1' : '0';
    }
    monitor.stop = monitor.stop || !line(text);
  };
  auto results = run_blocks(workload, std::span(&filter, 1), &monitor, observer);
  if (!results) {
    return std::unexpected(results.error());
  }
  const FprCount& all = results->front().all;
  std::array<char, 128> counts{};
  std::snprintf(counts.data(), counts.size(), "N: %10llu.   False_positives: %10llu.   Rate: %9.6f",
                static_cast<unsigned long long>(all.tests),
                static_cast<unsigned long long>(all.false_positives), all.measured());
  line(counts.data());
  return std::move(results->front());
}

}  // namespace encore::sim

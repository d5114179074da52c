#include "sim/replay/code_experiment.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "filter/bloom_filter.h"
#include "filter/hash.h"

namespace encore::sim {
namespace {

constexpr std::uint64_t kKeysAtOnce = 1024;  // between two checks of the monitor

// The positions of numbered keys.
class Positions {
 public:
  explicit Positions(const CodeExperiment& experiment)
      : experiment_(experiment), indices_(experiment.hashes) {}

  std::span<const std::uint64_t> of(std::uint64_t key) {
    std::array<char, sizeof key> bytes{};
    std::memcpy(bytes.data(), &key, sizeof key);
    const std::string_view name(bytes.data(), bytes.size());
    if (experiment_.kind == CodeKind::kBloom) {
      list(name, indices_);
      return indices_;
    }
    // A longer list begins with the shorter one.
    for (std::size_t length = indices_.size();; length *= 2) {
      drawn_.resize(length);
      list(name, drawn_);
      if (take_different()) {
        return indices_;
      }
    }
  }

 private:
  void list(std::string_view key, std::span<std::uint64_t> out) const {
    filter::key_indices(filter::HashFamily::kChained, {experiment_.seed, 0}, key, experiment_.bits,
                        out);
  }
  bool take_different() {
    std::size_t found = 0;
    for (const std::uint64_t index : drawn_) {
      const auto end = indices_.begin() + static_cast<std::ptrdiff_t>(found);
      if (std::find(indices_.begin(), end, index) == end) {
        indices_[found++] = index;
      }
      if (found == indices_.size()) {
        return true;
      }
    }
    return false;
  }

  CodeExperiment experiment_;
  std::vector<std::uint64_t> indices_;
  std::vector<std::uint64_t> drawn_;
};

}  // namespace

Result<CodeCount> run_code(const CodeExperiment& experiment, Monitor& monitor) {
  ENCORE_CHECK(experiment.kind == CodeKind::kBloom || experiment.hashes <= experiment.bits,
               "no more different positions than there are");
  auto filter = filter::BloomFilter::create({.layout = filter::Layout::kClassic,
                                             .hash = filter::HashFamily::kChained,
                                             .bits = experiment.bits,
                                             .hashes = experiment.hashes,
                                             .capacity = 1,
                                             .seed = {}});
  if (!filter) {
    return std::unexpected(filter.error());
  }
  Positions positions(experiment);
  CodeCount count;
  for (std::uint64_t key = 0; key < experiment.keys + experiment.tests; ++key) {
    if (key % kKeysAtOnce == 0 && !monitor.advance(key == 0 ? 0 : kKeysAtOnce)) {
      break;
    }
    if (key < experiment.keys) {
      filter->test_and_set_indices(positions.of(key));
    } else {
      count.false_positives += filter->test_indices(positions.of(key)) ? 1U : 0U;
    }
  }
  count.set_bits = filter->set_bits();
  return count;
}

}  // namespace encore::sim

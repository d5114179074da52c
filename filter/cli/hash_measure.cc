#include "filter/cli/hash_measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/cpu_time.h"
#include "filter/bloom_filter.h"
#include "filter/mean.h"
#include "filter/positions.h"
#include "filter/theory.h"

namespace encore::filter {
namespace {

constexpr std::size_t kParts = 256;

bool has_seed(HashFamily family) {
  return !lists_indices(family) || family == HashFamily::kChained;
}

// Parameters of the filter with this number.
FilterParameters parameters_of(const HashTrial& trial, std::uint64_t number) {
  const Seed seed{trial.seed + 1, number};
  return {.layout = Layout::kClassic,
          .hash = trial.family,
          .bits = trial.bits,
          .hashes = trial.hashes,
          .capacity = std::max<std::uint64_t>(1, trial.keys),
          .seed = has_seed(trial.family) ? seed : Seed{}};
}

// Random bytes of keys: none is there twice, because the first eight bytes count.
class RandomKeys {
 public:
  RandomKeys(const HashTrial& trial, std::uint64_t number)
      : state_(scrambled(trial.seed * 0x9e3779b97f4a7c15U + number + 1)), bytes_(trial.key_bytes) {}

  std::string_view next() {
    std::uint64_t word = ++count_;
    for (std::size_t at = 0; at < bytes_.size(); at += sizeof word) {
      // A bijection of the count, so that the first words differ.
      word = scrambled(word ^ state_);
      std::memcpy(bytes_.data() + at, &word, std::min(sizeof word, bytes_.size() - at));
    }
    return {bytes_.data(), bytes_.size()};
  }

 private:
  std::uint64_t state_;
  std::uint64_t count_ = 0;
  std::vector<char> bytes_;
};

// The positions of a key by any family.
class AnyPositions {
 public:
  explicit AnyPositions(const FilterParameters& parameters)
      : parameters_(parameters), positions_(parameters), indices_(parameters.hashes) {}

  std::span<const std::uint64_t> of(std::string_view key) {
    if (lists_indices(parameters_.hash)) {
      key_indices(parameters_.hash, parameters_.seed, key, parameters_.bits, indices_);
      return indices_;
    }
    std::size_t i = 0;
    positions_.for_each(hash_key(parameters_.hash, parameters_.seed, key), [&](std::uint64_t at) {
      indices_[i++] = at;
      return true;
    });
    return indices_;
  }

 private:
  FilterParameters parameters_;
  KeyPositions positions_;
  std::vector<std::uint64_t> indices_;
};

// Counts of positions in equal parts of a filter.
class Evenness {
 public:
  explicit Evenness(std::uint64_t bits)
      : bits_(bits), parts_(std::min<std::uint64_t>(kParts, bits)) {}

  void count(std::uint64_t position) {
    ++counts_[static_cast<std::size_t>(position * parts_ / bits_)];
    ++total_;
  }
  // How far chi-square is from its mean, in standard deviations; 0 for one part.
  double sigmas() const {
    double chi = 0;
    for (std::uint64_t part = 0; part < parts_; ++part) {
      const double expected = static_cast<double>(total_) *
                              static_cast<double>(start(part + 1) - start(part)) /
                              static_cast<double>(bits_);
      const double off = static_cast<double>(counts_[static_cast<std::size_t>(part)]) - expected;
      chi += off * off / expected;
    }
    const auto freedom = static_cast<double>(parts_ - 1);
    return parts_ == 1 ? 0 : (chi - freedom) / std::sqrt(2 * freedom);
  }

 private:
  // The first position of a part.
  std::uint64_t start(std::uint64_t part) const { return (part * bits_ + parts_ - 1) / parts_; }

  std::uint64_t bits_;
  std::uint64_t parts_;
  std::array<std::uint64_t, kParts> counts_{};
  std::uint64_t total_ = 0;
};

}  // namespace

double fields_fpr(const HashTrial& trial) {
  const std::uint64_t values = std::uint64_t{1} << field_width(trial.family, trial.bits);
  const auto often = static_cast<double>(values % trial.bits);
  const double least = std::floor(static_cast<double>(values) / static_cast<double>(trial.bits));
  const double throws = static_cast<double>(trial.keys) * trial.hashes;
  const auto all = static_cast<double>(values);
  // The share of values whose position is set.
  const auto set = [&](double count, double values_each) {
    return count * values_each / all * -std::expm1(throws * std::log1p(-values_each / all));
  };
  return std::pow(set(often, least + 1) + set(static_cast<double>(trial.bits) - often, least),
                  trial.hashes);
}

Result<HashQuality> measure_quality(const HashTrial& trial, Monitor& monitor) {
  const auto accepted = checked(parameters_of(trial, 0));
  if (!accepted) {
    return std::unexpected(accepted.error());
  }
  Evenness evenness(accepted->bits);
  std::vector<double> rates;
  for (std::uint64_t number = 0; number < trial.filters && monitor.advance(1); ++number) {
    auto filter = BloomFilter::create(parameters_of(trial, number));
    if (!filter) {
      return std::unexpected(filter.error());
    }
    AnyPositions positions(filter->parameters());
    RandomKeys keys(trial, number);
    for (std::uint64_t i = 0; i < trial.keys; ++i) {
      const auto indices = positions.of(keys.next());
      filter->test_and_set_indices(indices);
      std::ranges::for_each(indices, [&](std::uint64_t at) { evenness.count(at); });
    }
    std::uint64_t positives = 0;
    for (std::uint64_t i = 0; i < trial.keys; ++i) {
      positives += filter->test_indices(positions.of(keys.next())) ? 1U : 0U;
    }
    rates.push_back(static_cast<double>(positives) / static_cast<double>(trial.keys));
  }
  HashTrial made = trial;
  made.bits = accepted->bits;
  HashQuality quality;
  for (const double rate : rates) {
    quality.fpr += rate / static_cast<double>(rates.size());
  }
  const FilterShape shape = accepted->shape();
  quality.theory =
      fpr_exact(shape, trial.keys).value_or(fpr(shape, static_cast<double>(trial.keys)));
  quality.sigmas = sample_mean(rates, quality.theory).sigmas.value_or(0);
  if (field_width(trial.family, made.bits) != 0) {
    quality.own_theory = fields_fpr(made);
    quality.own_sigmas = sample_mean(rates, quality.own_theory).sigmas.value_or(0);
  }
  quality.evenness = evenness.sigmas();
  return quality;
}

Result<double> measure_time(const HashTrial& trial, std::uint64_t rounds) {
  constexpr double kRoundSeconds = 0.002;
  constexpr std::size_t kTimedKeys = 256;
  const auto accepted = checked(parameters_of(trial, 0));
  if (!accepted) {
    return std::unexpected(accepted.error());
  }
  AnyPositions positions(*accepted);
  RandomKeys source(trial, 0);
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < kTimedKeys; ++i) {
    keys.emplace_back(source.next());
  }
  std::vector<double> times;
  volatile std::uint64_t used = 0;  // so that the positions are computed
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::uint64_t done = 0;
    const double begin = thread_cpu_seconds();
    double spent = 0;
    while (spent < kRoundSeconds) {
      for (const std::string& key : keys) {
        used = used + positions.of(key).back();
      }
      done += keys.size();
      spent = thread_cpu_seconds() - begin;
    }
    times.push_back(1e9 * spent / static_cast<double>(done));
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return times.empty() ? 0 : *middle;
}

}  // namespace encore::filter

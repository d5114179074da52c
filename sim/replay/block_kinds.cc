#include "sim/replay/block_kinds.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace encore::sim {

using filter::BloomFilter;
using filter::Counting;
using filter::CountingFilter;
using filter::FillTheory;
using filter::FilterParameters;
using filter::FprCurve;
using filter::ScalableFilter;
using Buckets = std::vector<BloomFilter>;

namespace {

constexpr std::uint64_t kCounterBits = 4;

Result<Buckets> make_buckets(std::uint64_t count, FilterParameters parameters) {
  if (parameters.layout != filter::Layout::kClassic) {
    return fail("buckets of layout " + std::string(to_string(parameters.layout)) +
                ", accepted: classic");
  }
  if (count == 0 || parameters.bits / count == 0) {
    return fail(std::to_string(count) + " buckets of " + std::to_string(parameters.bits) +
                " bits, accepted: 1 to as many as there are bits");
  }
  parameters.bits /= count;
  Buckets buckets;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto bucket = BloomFilter::create(parameters);
    if (!bucket) {
      return std::unexpected(bucket.error());
    }
    buckets.push_back(std::move(*bucket));
  }
  return buckets;
}

filter::ScalableOptions growth_of(const BlockKindOptions& options,
                                  const FilterParameters& parameters) {
  const bool grows = options.kind == BlockKind::kScalable;
  return {.layout = parameters.layout,
          .hash = parameters.hash,
          .seed = parameters.seed,
          .capacity = options.capacity,
          .fpr = options.fpr,
          .growth = grows ? options.growth : 1,
          .tightening = grows ? options.tightening : 1};
}

}  // namespace

std::string_view to_string(BlockKind kind) noexcept {
  switch (kind) {
    case BlockKind::kSingle:
      return "single";
    case BlockKind::kScalable:
      return "scalable";
    case BlockKind::kGrowable:
      return "growable";
    case BlockKind::kCounting:
      return "counting";
    case BlockKind::kBucketed:
      return "bucketed";
  }
  return "?";
}

Result<BlockKindOptions> parse_block_kind(std::string_view name, BlockKindOptions options) {
  if (name == "single" || name == "pair") {
    return options;
  }
  for (const BlockKind kind :
       {BlockKind::kScalable, BlockKind::kGrowable, BlockKind::kCounting, BlockKind::kBucketed}) {
    if (to_string(kind) == name) {
      options.kind = kind;
      return options;
    }
  }
  return fail("unknown filter \"" + std::string(name) +
              "\", accepted: single, pair, scalable, growable, counting, bucketed");
}

double memory_bits(const BlockKindOptions& options, const filter::FilterShape& shape, double keys) {
  const auto bits = static_cast<double>(shape.bits);
  if (options.kind == BlockKind::kScalable || options.kind == BlockKind::kGrowable) {
    FilterParameters parameters;
    parameters.layout = shape.layout;
    return filter::forecast(growth_of(options, parameters), keys).bits;
  }
  return options.kind == BlockKind::kCounting ? kCounterBits * bits : bits;
}

Result<KindSubject> KindSubject::create(const BlockKindOptions& options,
                                        const FilterParameters& parameters) {
  KindSubject subject;
  subject.parameters_ = parameters;
  const auto take = [&](auto made) -> Result<KindSubject> {
    if (!made) {
      return std::unexpected(made.error());
    }
    subject.filter_ = std::move(*made);
    return std::move(subject);
  };
  if (lists_indices(parameters.hash)) {
    return fail("hash " + std::string(to_string(parameters.hash)) + " with a " +
                std::string(to_string(options.kind)) + " filter, accepted: one of 128 bits");
  }
  switch (options.kind) {
    case BlockKind::kScalable:
    case BlockKind::kGrowable:
      return take(ScalableFilter::create(growth_of(options, parameters)));
    case BlockKind::kCounting:
      subject.theory_ = FillTheory(parameters.shape());
      return take(CountingFilter::create(parameters));
    case BlockKind::kBucketed: {
      auto buckets = take(make_buckets(options.buckets, parameters));
      if (buckets) {
        buckets->theory_ = FillTheory(parameters.shape(), options.buckets);
      }
      return buckets;
    }
    case BlockKind::kSingle:
      break;
  }
  return fail("a single filter is no other kind");
}

bool KindSubject::test_and_set(const filter::Hash128& hash) {
  if (auto* buckets = std::get_if<Buckets>(&filter_)) {
    return (*buckets)[filter::scaled(remix(hash), buckets->size())].test_and_set(hash);
  }
  if (auto* scalable = std::get_if<ScalableFilter>(&filter_)) {
    return !scalable->add(hash);
  }
  // A key that is there is not counted once more.
  auto& counting = std::get<CountingFilter>(filter_);
  return counting.test(hash) || !counting.add(hash);
}

double KindSubject::fpr_from_bits() const {
  if (const auto* buckets = std::get_if<Buckets>(&filter_)) {
    double sum = 0;
    for (const BloomFilter& bucket : *buckets) {
      sum += bucket.fpr_from_bits();
    }
    return sum / static_cast<double>(buckets->size());
  }
  if (const auto* scalable = std::get_if<ScalableFilter>(&filter_)) {
    return scalable->fpr_from_bits();
  }
  return std::get<CountingFilter>(filter_).fpr_from_bits().value_or(1);
}

double KindSubject::scalable_theory(const ScalableFilter& scalable) {
  const auto slices = scalable.slices();
  for (; curve_of_ < slices.size(); ++curve_of_) {
    const FilterParameters& slice = slices[curve_of_].parameters();
    if (curve_of_ != 0) {
      const FilterParameters& full = slices[curve_of_ - 1].parameters();
      misses_full_ *= 1 - curve_.at(static_cast<double>(full.capacity));
    }
    curve_ = FprCurve(slice.shape(), static_cast<double>(slice.capacity), Counting::kEffective);
  }
  return 1 - misses_full_ * (1 - curve_.at(static_cast<double>(slices.back().insertions())));
}

double KindSubject::fpr_theory(std::uint64_t keys) {
  if (const auto* scalable = std::get_if<ScalableFilter>(&filter_)) {
    return scalable_theory(*scalable);
  }
  return theory_.at(keys);
}

std::uint64_t KindSubject::bits() const {
  if (const auto* buckets = std::get_if<Buckets>(&filter_)) {
    return buckets->size() * buckets->front().parameters().bits;
  }
  if (const auto* scalable = std::get_if<ScalableFilter>(&filter_)) {
    return scalable->bits();
  }
  return std::get<CountingFilter>(filter_).parameters().bits;
}

std::uint32_t KindSubject::hashes() const {
  const auto* scalable = std::get_if<ScalableFilter>(&filter_);
  return scalable != nullptr ? scalable->slices().back().parameters().hashes : parameters_.hashes;
}

std::uint64_t KindSubject::slices() const {
  const auto* scalable = std::get_if<ScalableFilter>(&filter_);
  return scalable != nullptr ? scalable->slices().size() : 1;
}

std::uint64_t KindSubject::memory_bytes() const {
  return bits() * (std::holds_alternative<CountingFilter>(filter_) ? kCounterBits : 1) / 8;
}

}  // namespace encore::sim

#include "filter/scalable_filter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "filter/saved_filter.h"

namespace encore::filter {
namespace {

constexpr std::size_t kKeysAtOnce = 128;

// Asks one slice after the other for the keys that none has answered for yet. The newest slice is
// the largest, and has most of the keys.
void test_slices(std::span<const BloomFilter> slices, std::span<const Hash128> hashes,
                 std::span<bool> out) {
  std::array<Hash128, kKeysAtOnce> open;
  std::array<std::uint8_t, kKeysAtOnce> place{};
  std::array<bool, kKeysAtOnce> answers{};
  std::ranges::fill(out, false);
  for (std::size_t s = slices.size(); s-- > 0;) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      open[count] = slice_hash(hashes[i], static_cast<std::uint32_t>(s));
      place[count] = static_cast<std::uint8_t>(i);
      count += out[i] ? 0U : 1U;
    }
    if (count == 0) {
      return;
    }
    slices[s].test(std::span<const Hash128>(open).first(count), std::span(answers).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      out[place[i]] = answers[i];
    }
  }
}

}  // namespace

Result<ScalableFilter> ScalableFilter::create(const ScalableOptions& options) {
  if (auto fine = check(options); !fine) {
    return std::unexpected(fine.error());
  }
  ScalableFilter filter(options);
  if (auto grown = filter.grow(); !grown) {
    return std::unexpected(grown.error());
  }
  return filter;
}

Result<void> ScalableFilter::grow() {
  if (slices_.size() == kSlicesMax) {
    return fail("a filter of " + std::to_string(kSlicesMax) + " slices, the most there may be");
  }
  const bool like_first = options_.growable() && !slices_.empty();
  const auto parameters =
      like_first ? Result<FilterParameters>(slices_.front().parameters())
                 : slice_parameters(options_, static_cast<std::uint32_t>(slices_.size()));
  if (!parameters) {
    return std::unexpected(parameters.error());
  }
  auto slice = BloomFilter::create(*parameters);
  if (!slice) {
    return std::unexpected(slice.error());
  }
  slices_.push_back(std::move(*slice));
  return {};
}

bool ScalableFilter::full() const {
  const BloomFilter& last = slices_.back();
  return last.insertions() >= last.parameters().capacity;
}

bool ScalableFilter::overfull() const {
  const BloomFilter& last = slices_.back();
  return last.insertions() > last.parameters().capacity;
}

bool ScalableFilter::test(const Hash128& hash) const {
  for (std::size_t i = slices_.size(); i-- > 0;) {
    if (slices_[i].test(slice_hash(hash, static_cast<std::uint32_t>(i)))) {
      return true;
    }
  }
  return false;
}

bool ScalableFilter::test(std::string_view key) const {
  return test(hash_key(options_.hash, options_.seed, key));
}

bool ScalableFilter::add(std::string_view key) {
  return add(hash_key(options_.hash, options_.seed, key));
}

bool ScalableFilter::add(const Hash128& hash) {
  if (test(hash)) {
    return false;
  }
  if (full() && !cannot_grow_) {
    cannot_grow_ = !grow();
  }
  return !slices_.back().test_and_set(
      slice_hash(hash, static_cast<std::uint32_t>(slices_.size() - 1)));
}

void ScalableFilter::test(std::span<const std::string_view> keys, std::span<bool> out) const {
  ENCORE_CHECK(keys.size() == out.size(), "an answer for each key");
  std::array<Hash128, kKeysAtOnce> hashes;
  for (std::size_t start = 0; start < keys.size(); start += kKeysAtOnce) {
    const std::size_t count = std::min(kKeysAtOnce, keys.size() - start);
    for (std::size_t i = 0; i < count; ++i) {
      hashes[i] = hash_key(options_.hash, options_.seed, keys[start + i]);
    }
    test_slices(slices_, std::span<const Hash128>(hashes.data(), count), out.subspan(start, count));
  }
}

Result<void> ScalableFilter::merge(const ScalableFilter& other) {
  const ScalableOptions& a = options_;
  const ScalableOptions& b = other.options_;
  if (auto fine = alike(slices_.front().parameters(), other.slices_.front().parameters(), "merged");
      !fine) {
    return fine;
  }
  if (a.growth != b.growth || a.tightening != b.tightening || a.fpr != b.fpr) {
    return fail("filters that grow differently cannot be merged: by " + std::to_string(a.growth) +
                " and " + std::to_string(b.growth) + ", tightening by " +
                std::to_string(a.tightening) + " and " + std::to_string(b.tightening) + ", to " +
                std::to_string(a.fpr) + " and " + std::to_string(b.fpr));
  }
  const std::size_t common = std::min(slices_.size(), other.slices_.size());
  std::vector<BloomFilter> further;
  for (std::size_t i = 0; i < other.slices_.size(); ++i) {
    const BloomFilter& theirs = other.slices_[i];
    if (i >= common) {
      auto copy = theirs.copy();
      if (!copy) {
        return std::unexpected(copy.error());
      }
      further.push_back(std::move(*copy));
    } else if (auto fine = alike(slices_[i].parameters(), theirs.parameters(), "merged"); !fine) {
      return fine;
    }
  }
  // Nothing can fail any more.
  for (std::size_t i = 0; i < common; ++i) {
    ENCORE_CHECK(slices_[i].merge(other.slices_[i]).has_value(), "they were found to be alike");
  }
  std::ranges::move(further, std::back_inserter(slices_));
  return {};
}

Result<void> ScalableFilter::intersect(const ScalableFilter&) {
  return fail(
      "filters that grow cannot be intersected: a key may be in one slice of the first and in "
      "another of the second, and their AND would not have it");
}

std::uint64_t ScalableFilter::insertions() const {
  std::uint64_t sum = 0;
  for (const BloomFilter& slice : slices_) sum += slice.insertions();
  return sum;
}

std::uint64_t ScalableFilter::set_bits() const {
  std::uint64_t sum = 0;
  for (const BloomFilter& slice : slices_) sum += slice.set_bits();
  return sum;
}

std::uint64_t ScalableFilter::bits() const {
  std::uint64_t sum = 0;
  for (const BloomFilter& slice : slices_) sum += slice.parameters().bits;
  return sum;
}

std::uint64_t ScalableFilter::capacity() const {
  std::uint64_t sum = 0;
  for (const BloomFilter& slice : slices_) sum += slice.parameters().capacity;
  return sum;
}

double ScalableFilter::fpr_from_bits() const {
  double misses = 1;
  for (const BloomFilter& slice : slices_) {
    misses *= 1 - slice.fpr_from_bits();
  }
  return 1 - misses;
}

std::string ScalableFilter::save() const {
  SavedFilter saved;
  saved.kind = SavedKind::kScalable;
  saved.growth = {options_.capacity, options_.fpr, options_.growth, options_.tightening};
  std::vector<ReadLine> reads;
  for (const BloomFilter& slice : slices_) {
    saved.generations.push_back(
        {slice.parameters(), std::min(slice.insertions(), slice.set_bits()), slice.set_bits(), {}});
    reads.emplace_back(
        [&slice](std::uint64_t i, std::uint64_t* words) { slice.read_line(i, words); });
  }
  return encode(saved, reads);
}

Result<ScalableFilter> ScalableFilter::load(std::string_view bytes) {
  const auto saved = decode(bytes, {.kind = SavedKind::kScalable, .generations_max = kSlicesMax});
  if (!saved) {
    return std::unexpected(saved.error());
  }
  const FilterParameters& first = saved->generations.front().parameters;
  const SavedGrowth& growth = saved->growth;
  const ScalableOptions options{.layout = first.layout,
                                .hash = first.hash,
                                .seed = first.seed,
                                .capacity = growth.capacity,
                                .fpr = growth.fpr,
                                .growth = growth.growth,
                                .tightening = growth.tightening};
  if (auto fine = check(options); !fine) {
    return refuse_saved(fine.error().message);
  }
  ScalableFilter filter(options);
  for (const SavedGeneration& generation : saved->generations) {
    const FilterParameters& parameters = generation.parameters;
    if (parameters.layout != first.layout || parameters.hash != first.hash ||
        parameters.seed != first.seed) {
      return refuse_saved("slices of different layouts, hashes or seeds");
    }
    // Or the next slice would be as large as a stranger says. (Powers differ in their last digit.)
    const double capacity =
        slice_capacity(options, static_cast<std::uint32_t>(filter.slices_.size()));
    if (std::abs(static_cast<double>(parameters.capacity) - capacity) > 1 + 1e-9 * capacity) {
      return refuse_saved("a slice for " + std::to_string(parameters.capacity) +
                          " keys, which is not how it says that it grows");
    }
    auto slice = BloomFilter::from_saved(generation);
    if (!slice) {
      return std::unexpected(slice.error());
    }
    filter.slices_.push_back(std::move(*slice));
  }
  return filter;
}

}  // namespace encore::filter

#include "filter/bloom_filter.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "filter/joint_bits.h"
#include "filter/saved_filter.h"

namespace encore::filter {
namespace {

// Calls each(i) for every key, the lines of those that follow on their way.
template <typename Each>
void in_batches(const GenerationBits& bits, std::span<const Hash128> hashes, Each each) {
  look_ahead(hashes.size(), [&](std::size_t i) { bits.prefetch(hashes[i]); }, each);
}

}  // namespace

BloomFilter::BloomFilter(const FilterParameters& parameters, LineMemory memory)
    : parameters_(parameters), memory_(std::move(memory)), bits_(parameters, memory_.words(), 1) {}

Result<BloomFilter> BloomFilter::create(const FilterParameters& parameters) {
  const auto accepted = checked(parameters);
  if (!accepted) {
    return std::unexpected(accepted.error());
  }
  auto memory = LineMemory::create(GenerationBits::lines_for(*accepted));
  if (!memory) {
    return std::unexpected(memory.error());
  }
  return BloomFilter(*accepted, std::move(*memory));
}

bool BloomFilter::test_and_set(const Hash128& hash) {
  const bool was_there = bits_.insert(hash) == 0;
  insertions_ += was_there ? 0 : 1;
  return was_there;
}

bool BloomFilter::test(const Hash128& hash) const { return bits_.test(hash); }

void BloomFilter::test_and_set(std::span<const Hash128> hashes, std::span<bool> out) {
  ENCORE_CHECK(hashes.size() == out.size(), "an answer for each key");
  in_batches(bits_, hashes, [&](std::size_t i) { out[i] = test_and_set(hashes[i]); });
}

void BloomFilter::test(std::span<const Hash128> hashes, std::span<bool> out) const {
  ENCORE_CHECK(hashes.size() == out.size(), "an answer for each key");
  in_batches(bits_, hashes, [&](std::size_t i) { out[i] = bits_.test(hashes[i]); });
}

bool BloomFilter::test_and_set_indices(std::span<const std::uint64_t> indices) {
  ENCORE_CHECK(parameters_.layout == Layout::kClassic,
               "indices of one's own need a classic filter");
  const bool was_there = bits_.insert_indices(indices) == 0;
  insertions_ += was_there ? 0 : 1;
  return was_there;
}

bool BloomFilter::test_indices(std::span<const std::uint64_t> indices) const {
  ENCORE_CHECK(parameters_.layout == Layout::kClassic,
               "indices of one's own need a classic filter");
  return bits_.test_indices(indices);
}

Result<void> BloomFilter::merge(const BloomFilter& other) {
  const FilterParameters& a = parameters_;
  const FilterParameters& b = other.parameters_;
  if (a.shape() != b.shape() || a.hash != b.hash) {
    const auto text = [](const FilterParameters& p) {
      return std::string(to_string(p.layout)) + "/" + std::string(to_string(p.hash)) + ", " +
             std::to_string(p.bits) + " bits, " + std::to_string(p.hashes) + " hashes";
    };
    return fail("filters of different make cannot be merged: " + text(a) + " and " + text(b));
  }
  if (a.seed != b.seed) {
    return fail("filters with different seeds cannot be merged: fingerprints " +
                fingerprint(a.seed) + " and " + fingerprint(b.seed));
  }
  std::array<std::uint64_t, kLineWords> words{};
  for (std::uint64_t i = 0; i < bits_.lines(); ++i) {
    other.bits_.read_line(i, words.data());
    ENCORE_CHECK(bits_.merge_line(i, words.data()), "a filter of the same size has the same bits");
  }
  insertions_ += other.insertions_;
  return {};
}

double BloomFilter::fill() const {
  return static_cast<double>(set_bits()) / static_cast<double>(parameters_.bits);
}

double BloomFilter::fpr_from_bits() const {
  const GenerationBits* const bits = &bits_;
  return filter::fpr_from_bits({&bits, 1});
}

std::string BloomFilter::save() const {
  SavedFilter saved;
  saved.generations.push_back({parameters_, std::min(insertions_, set_bits()), set_bits(), {}});
  return encode(saved, {&bits_});
}

Result<BloomFilter> BloomFilter::load(std::string_view bytes) {
  const auto saved = decode(bytes, {});
  if (!saved) {
    return std::unexpected(saved.error());
  }
  const SavedGeneration& generation = saved->generations.front();
  auto filter = create(generation.parameters);
  if (!filter) {
    return filter;
  }
  if (auto restored = restore(generation, filter->bits_); !restored) {
    return std::unexpected(restored.error());
  }
  filter->insertions_ = generation.insertions;
  return filter;
}

}  // namespace encore::filter

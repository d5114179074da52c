#include "filter/counting_filter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "filter/key_estimate.h"
#include "filter/saved_filter.h"
#include "filter/split_line.h"
#include "filter/theory.h"

namespace encore::filter {
namespace {

constexpr std::size_t kCountedAtOnce = 128;
constexpr std::uint64_t kCountersInLine = 128;

std::uint64_t lines_for(const FilterParameters& parameters) {
  return (parameters.bits + kCountersInLine - 1) / kCountersInLine;
}

// One bit for each of the sixteen counters of a word that is not zero.
std::uint64_t occupied(std::uint64_t word) {
  word |= word >> 2U;
  word = (word | word >> 1U) & 0x1111111111111111U;
  word = (word | word >> 3U) & 0x0303030303030303U;
  word = (word | word >> 6U) & 0x000f000f000f000fU;
  word = (word | word >> 12U) & 0x000000ff000000ffU;
  return (word | word >> 24U) & 0xffffU;
}

}  // namespace

CountingFilter::CountingFilter(const FilterParameters& parameters, LineMemory memory)
    : parameters_(parameters), positions_(parameters), memory_(std::move(memory)) {}

Result<CountingFilter> CountingFilter::create(const FilterParameters& parameters) {
  const auto accepted = checked(parameters);
  if (!accepted) {
    return std::unexpected(accepted.error());
  }
  auto memory = LineMemory::create(lines_for(*accepted));
  if (!memory) {
    return std::unexpected(memory.error());
  }
  return CountingFilter(*accepted, std::move(*memory));
}

template <typename Visit>
void CountingFilter::for_each(const Hash128& hash, Visit visit) const {
  positions_.for_each(hash, visit);
}

template <typename Visit>
void CountingFilter::for_each(std::string_view key, Visit visit) const {
  if (!lists_indices(parameters_.hash)) {
    positions_.for_each(hash_key(parameters_.hash, parameters_.seed, key), visit);
    return;
  }
  std::array<std::uint64_t, kHashesMax> room;
  const std::span<std::uint64_t> indices(room.data(), parameters_.hashes);
  key_indices(parameters_.hash, parameters_.seed, key, parameters_.bits, indices);
  for (const std::uint64_t i : indices) {
    if (!visit(i)) {
      return;
    }
  }
}

void CountingFilter::set_counter(std::uint64_t i, std::uint32_t value) {
  std::uint64_t& word = memory_.words()[i / kInWord];
  word = (word & ~(std::uint64_t{kCounterMax} << shift(i))) | std::uint64_t{value} << shift(i);
}

// True if the counter was zero.
bool CountingFilter::raise(std::uint64_t i) {
  const std::uint32_t value = counter(i);
  if (value == kCounterMax) {
    ++overflows_;
    return false;
  }
  set_counter(i, value + 1);
  set_bits_ += value == 0 ? 1 : 0;
  return value == 0;
}

// A key may have a position twice, and not be counted twice there: zero is left alone as well.
void CountingFilter::lower(std::uint64_t i) {
  const std::uint32_t value = counter(i);
  if (value == 0 || value == kCounterMax) {
    return;
  }
  set_counter(i, value - 1);
  set_bits_ -= value == 1 ? 1 : 0;
}

template <typename Key>
bool CountingFilter::count_in(const Key& key) {
  bool is_new = false;
  for_each(key, [&](std::uint64_t i) {
    is_new = raise(i) || is_new;
    return true;
  });
  ++keys_;
  return is_new;
}

template <typename Key>
bool CountingFilter::holds(const Key& key) const {
  bool all = true;
  for_each(key, [&](std::uint64_t i) { return all = counter(i) != 0; });
  return all;
}

template <typename Key>
bool CountingFilter::count_out(const Key& key) {
  if (!holds(key)) {
    return false;
  }
  for_each(key, [&](std::uint64_t i) {
    lower(i);
    return true;
  });
  keys_ -= keys_ == 0 ? 0 : 1;
  return true;
}

bool CountingFilter::add(std::string_view key) { return count_in(key); }
bool CountingFilter::test(std::string_view key) const { return holds(key); }
bool CountingFilter::remove(std::string_view key) { return count_out(key); }
bool CountingFilter::add(const Hash128& hash) { return count_in(hash); }
bool CountingFilter::test(const Hash128& hash) const { return holds(hash); }
bool CountingFilter::remove(const Hash128& hash) { return count_out(hash); }

void CountingFilter::test(std::span<const std::string_view> keys, std::span<bool> out) const {
  ENCORE_CHECK(keys.size() == out.size(), "an answer for each key");
  if (lists_indices(parameters_.hash)) {
    std::ranges::transform(keys, out.begin(), [&](std::string_view key) { return test(key); });
    return;
  }
  const auto ask_for = [&](const Hash128& hash) {
    positions_.for_each(hash, [&](std::uint64_t i) {
      __builtin_prefetch(memory_.words() + i / kInWord);
      return true;
    });
  };
  std::array<Hash128, kCountedAtOnce> hashes;
  for (std::size_t start = 0; start < keys.size(); start += kCountedAtOnce) {
    const std::size_t count = std::min(kCountedAtOnce, keys.size() - start);
    for (std::size_t i = 0; i < count; ++i) {
      hashes[i] = hash_key(parameters_.hash, parameters_.seed, keys[start + i]);
    }
    if (memory_.size_bytes() <= kInCacheBytes) {
      std::transform(hashes.data(), hashes.data() + count,
                     out.begin() + static_cast<std::ptrdiff_t>(start),
                     [&](const Hash128& hash) { return test(hash); });
      continue;
    }
    look_ahead(
        count, [&](std::size_t i) { ask_for(hashes[i]); },
        [&](std::size_t i) { out[start + i] = test(hashes[i]); });
  }
}

template <typename Combine>
void CountingFilter::combine(const CountingFilter& other, Combine combine) {
  for (std::uint64_t i = 0; i < parameters_.bits; ++i) {
    const std::uint32_t before = counter(i);
    const std::uint32_t after = combine(before, other.counter(i));
    set_counter(i, after);
    set_bits_ += (after != 0 ? 1U : 0U);
    set_bits_ -= (before != 0 ? 1U : 0U);
  }
}

Result<void> CountingFilter::merge(const CountingFilter& other) {
  if (auto refused = alike(parameters_, other.parameters_, "merged"); !refused) {
    return refused;
  }
  CombinedBits bits{.first = set_bits_, .second = other.set_bits_};
  overflows_ += other.overflows_;
  combine(other, [&](std::uint32_t a, std::uint32_t b) {
    overflows_ += a + b > kCounterMax ? a + b - kCounterMax : 0;
    return std::min(a + b, kCounterMax);
  });
  bits.either = set_bits_;
  keys_ += other.keys_ - keys_in_common(parameters_.shape(), bits, keys_, other.keys_);
  return {};
}

Result<void> CountingFilter::intersect(const CountingFilter& other) {
  if (auto refused = alike(parameters_, other.parameters_, "intersected"); !refused) {
    return refused;
  }
  CombinedBits bits{.first = set_bits_, .second = other.set_bits_};
  combine(other, [](std::uint32_t a, std::uint32_t b) { return std::min(a, b); });
  bits.either = bits.first + bits.second - set_bits_;
  keys_ = keys_in_common(parameters_.shape(), bits, keys_, other.keys_);
  return {};
}

Result<BloomFilter> CountingFilter::plain() const {
  const std::uint64_t last = words();
  return BloomFilter::from_lines(
      parameters_, std::min(keys_, set_bits_), [&](std::uint64_t line, std::uint64_t* out) {
        constexpr std::uint64_t kParts = 64 / kInWord;
        for (std::uint64_t w = 0; w < kLineWords; ++w) {
          out[w] = 0;
          for (std::uint64_t part = 0; part < kParts; ++part) {
            const std::uint64_t from = (line * kLineWords + w) * kParts + part;
            out[w] |= from < last ? occupied(memory_.words()[from]) << (kInWord * part) : 0;
          }
        }
      });
}

double CountingFilter::fill() const {
  return static_cast<double>(set_bits_) / static_cast<double>(parameters_.bits);
}

Result<double> CountingFilter::fpr_from_bits() const {
  if (parameters_.layout == Layout::kClassic &&
      field_width(parameters_.hash, parameters_.bits) == 0) {
    return fpr_from_fill(parameters_.shape(), static_cast<double>(set_bits_));
  }
  const auto bits = plain();
  if (!bits) {
    return std::unexpected(bits.error());
  }
  return bits->fpr_from_bits();
}

std::string CountingFilter::save() const {
  SavedFilter saved;
  saved.kind = SavedKind::kCounting;
  saved.insertions = keys_;
  saved.refreshes = overflows_;
  saved.generations.push_back({parameters_, std::min(keys_, set_bits_), set_bits_, {}});
  const ReadLine read = [&](std::uint64_t i, std::uint64_t* words) {
    std::memcpy(words, memory_.words() + i * kLineWords, kLineBytes);
  };
  return encode(saved, {&read, 1});
}

Result<CountingFilter> CountingFilter::load(std::string_view bytes) {
  const auto saved = decode(bytes, {.kind = SavedKind::kCounting});
  if (!saved) {
    return std::unexpected(saved.error());
  }
  const SavedGeneration& generation = saved->generations.front();
  auto filter = create(generation.parameters);
  if (!filter) {
    return filter;
  }
  std::uint64_t* const words = filter->memory_.words();
  for (std::uint64_t i = 0; i < lines_for(generation.parameters); ++i) {
    const auto line = saved_line(generation, i);
    std::ranges::copy(line, words + i * kLineWords);
  }
  const std::uint64_t bits = generation.parameters.bits;
  for (std::uint64_t i = bits; i < lines_for(generation.parameters) * kCountersInLine; ++i) {
    if (filter->counter(i) != 0) {
      return refuse_saved("counters beyond the end of the filter");
    }
  }
  for (std::uint64_t word = 0; word < filter->words(); ++word) {
    filter->set_bits_ += static_cast<std::uint64_t>(std::popcount(occupied(words[word])));
  }
  if (filter->set_bits_ != generation.set_bits) {
    return refuse_saved(std::to_string(filter->set_bits_) + " counters above zero, stated " +
                        std::to_string(generation.set_bits));
  }
  filter->keys_ = saved->insertions;
  filter->overflows_ = saved->refreshes;
  return filter;
}

}  // namespace encore::filter

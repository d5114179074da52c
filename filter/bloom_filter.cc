#include "filter/bloom_filter.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "filter/joint_bits.h"
#include "filter/key_estimate.h"
#include "filter/saved_filter.h"

namespace encore::filter {
namespace {

// Calls each(i) for every key, the lines of those that follow on their way.
template <typename Each>
void in_batches(const GenerationBits& bits, std::span<const Hash128> hashes, Each each) {
  look_ahead(hashes.size(), [&](std::size_t i) { bits.prefetch(hashes[i]); }, each);
}

// Keys that are hashed before the first is looked up: more than are looked ahead for, and few
// enough to stay in the first cache.
constexpr std::size_t kKeysAtOnce = 128;

bool bit(const std::uint64_t* words, std::uint64_t i) {
  return (words[i / 64] >> (i % 64) & 1U) != 0;
}

// Bit by bit for all of up to kKeysAtOnce keys: where a key that is not there gives up is then no
// branch that the processor would mispredict. Once most of those that are left stay, which are
// there, they are tested one by one. For bits in its cache. REQUIRES: classic or partitioned.
void test_some_by_bits(const KeyPositions& positions, const std::uint64_t* words,
                       std::span<const Hash128> hashes, std::span<bool> out) {
  std::array<std::uint8_t, kKeysAtOnce> open;
  std::iota(open.begin(), open.end(), std::uint8_t{0});
  std::size_t left = hashes.size();
  std::uint32_t tested = 0;
  for (bool many_go = true; many_go && tested < positions.hashes; ++tested) {
    std::size_t next = 0;
    for (std::size_t at = 0; at < left; ++at) {
      const std::uint8_t key = open[at];
      open[next] = key;
      next += bit(words, positions.nth(hashes[key], tested)) ? 1U : 0U;
    }
    many_go = left - next > left / 8;
    left = next;
  }
  std::ranges::fill(out, false);
  for (std::size_t at = 0; at < left; ++at) {
    bool all = true;
    for (std::uint32_t i = tested; all && i < positions.hashes; ++i) {
      all = bit(words, positions.nth(hashes[open[at]], i));
    }
    out[open[at]] = all;
  }
}

void test_by_bits(const KeyPositions& positions, const std::uint64_t* words,
                  std::span<const Hash128> hashes, std::span<bool> out) {
  for (std::size_t start = 0; start < hashes.size(); start += kKeysAtOnce) {
    const std::size_t count = std::min(kKeysAtOnce, hashes.size() - start);
    test_some_by_bits(positions, words, hashes.subspan(start, count), out.subspan(start, count));
  }
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

Result<BloomFilter> BloomFilter::from_lines(const FilterParameters& parameters,
                                            std::uint64_t insertions, const ReadLine& read) {
  auto filter = create(parameters);
  if (!filter) {
    return filter;
  }
  std::array<std::uint64_t, kLineWords> words{};
  for (std::uint64_t i = 0; i < filter->bits_.lines(); ++i) {
    read(i, words.data());
    if (!filter->bits_.merge_line(i, words.data())) {
      return fail("a set bit beyond the last of " + std::to_string(parameters.bits));
    }
  }
  filter->insertions_ = insertions;
  return filter;
}

Result<BloomFilter> BloomFilter::copy() const {
  return from_lines(parameters_, insertions_,
                    [this](std::uint64_t i, std::uint64_t* words) { bits_.read_line(i, words); });
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
  const bool in_lines =
      parameters_.layout == Layout::kBlocked || parameters_.layout == Layout::kSplit;
  if (!in_lines && memory_.size_bytes() <= kInCacheBytes) {
    test_by_bits(KeyPositions(parameters_), memory_.words(), hashes, out);
    return;
  }
  in_batches(bits_, hashes, [&](std::size_t i) { out[i] = bits_.test(hashes[i]); });
}

std::span<const std::uint64_t> BloomFilter::list_of(
    std::string_view key, std::span<std::uint64_t, kHashesMax> room) const {
  const std::span<std::uint64_t> indices = room.first(parameters_.hashes);
  key_indices(parameters_.hash, parameters_.seed, key, parameters_.bits, indices);
  return indices;
}

bool BloomFilter::add(std::string_view key) {
  if (!lists_indices(parameters_.hash)) {
    return !test_and_set(hash_of(key));
  }
  std::array<std::uint64_t, kHashesMax> room;
  return !test_and_set_indices(list_of(key, room));
}

bool BloomFilter::test(std::string_view key) const {
  if (!lists_indices(parameters_.hash)) {
    return test(hash_of(key));
  }
  std::array<std::uint64_t, kHashesMax> room;
  return test_indices(list_of(key, room));
}

void BloomFilter::test(std::span<const std::string_view> keys, std::span<bool> out) const {
  ENCORE_CHECK(keys.size() == out.size(), "an answer for each key");
  if (lists_indices(parameters_.hash)) {
    std::ranges::transform(keys, out.begin(), [&](std::string_view key) { return test(key); });
    return;
  }
  std::array<Hash128, kKeysAtOnce> hashes;
  for (std::size_t start = 0; start < keys.size(); start += kKeysAtOnce) {
    const std::size_t count = std::min(kKeysAtOnce, keys.size() - start);
    for (std::size_t i = 0; i < count; ++i) {
      hashes[i] = hash_of(keys[start + i]);
    }
    test(std::span<const Hash128>(hashes.data(), count), out.subspan(start, count));
  }
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
  if (auto refused = alike(parameters_, other.parameters_, "merged"); !refused) {
    return refused;
  }
  CombinedBits bits{.first = set_bits(), .second = other.set_bits()};
  std::array<std::uint64_t, kLineWords> words{};
  for (std::uint64_t i = 0; i < bits_.lines(); ++i) {
    other.bits_.read_line(i, words.data());
    ENCORE_CHECK(bits_.merge_line(i, words.data()), "a filter of the same size has the same bits");
  }
  bits.either = set_bits();
  const std::uint64_t common =
      keys_in_common(parameters_.shape(), bits, insertions_, other.insertions_);
  insertions_ = std::min(set_bits(), insertions_ + other.insertions_ - common);
  return {};
}

Result<void> BloomFilter::intersect(const BloomFilter& other) {
  if (auto refused = alike(parameters_, other.parameters_, "intersected"); !refused) {
    return refused;
  }
  CombinedBits bits{.first = set_bits(), .second = other.set_bits()};
  std::array<std::uint64_t, kLineWords> words{};
  for (std::uint64_t i = 0; i < bits_.lines(); ++i) {
    other.bits_.read_line(i, words.data());
    bits_.intersect_line(i, words.data());
  }
  // A bit that both have is counted twice in the sum.
  bits.either = bits.first + bits.second - set_bits();
  insertions_ = std::min(set_bits(),
                         keys_in_common(parameters_.shape(), bits, insertions_, other.insertions_));
  return {};
}

double BloomFilter::fill() const {
  return static_cast<double>(set_bits()) / static_cast<double>(parameters_.bits);
}

// Returns the share of the 2^20 values of a field that lead to a set bit.
double BloomFilter::share_reached_by_fields() const {
  const std::uint64_t values = std::uint64_t{1} << field_width(parameters_.hash, parameters_.bits);
  const std::uint64_t often = values % parameters_.bits;
  std::uint64_t set_often = 0;
  std::array<std::uint64_t, kLineWords> words{};
  for (std::uint64_t i = 0; i * kLineBits < often; ++i) {
    bits_.read_line(i, words.data());
    for (std::uint64_t bit = i * kLineBits; bit < std::min(often, (i + 1) * kLineBits); ++bit) {
      set_often += words[bit / 64 % kLineWords] >> (bit % 64) & 1U;
    }
  }
  const std::uint64_t set = values / parameters_.bits * set_bits() + set_often;
  return static_cast<double>(set) / static_cast<double>(values);
}

double BloomFilter::fpr_from_bits() const {
  if (field_width(parameters_.hash, parameters_.bits) != 0) {
    return std::pow(share_reached_by_fields(), parameters_.hashes);
  }
  const GenerationBits* const bits = &bits_;
  return filter::fpr_from_bits({&bits, 1});
}

std::string BloomFilter::raw_bits() const {
  const std::size_t size = (parameters_.bits + 7) / 8;
  std::string raw;
  raw.reserve(bits_.lines() * kLineBytes);
  std::array<std::uint64_t, kLineWords> words{};
  for (std::uint64_t i = 0; i < bits_.lines(); ++i) {
    bits_.read_line(i, words.data());
    for (const std::uint64_t word : words) {
      for (unsigned shift = 0; shift < 64; shift += 8) {
        raw.push_back(static_cast<char>(word >> shift & 0xffU));
      }
    }
  }
  raw.resize(size);
  return raw;
}

Result<BloomFilter> BloomFilter::from_raw_bits(const FilterParameters& parameters,
                                               std::string_view raw, std::uint64_t insertions) {
  const auto accepted = checked(parameters);
  if (!accepted) {
    return std::unexpected(accepted.error());
  }
  if (raw.size() != (accepted->bits + 7) / 8) {
    return fail(std::to_string(raw.size()) + " bytes of bits, expected " +
                std::to_string((accepted->bits + 7) / 8) + " for " +
                std::to_string(accepted->bits) + " bits");
  }
  auto filter = create(*accepted);
  if (!filter) {
    return filter;
  }
  for (std::uint64_t i = 0; i < filter->bits_.lines(); ++i) {
    std::array<std::uint64_t, kLineWords> words{};
    const std::string_view line = raw.substr(i * kLineBytes, kLineBytes);
    for (std::size_t byte = 0; byte < line.size(); ++byte) {
      words[byte / 8] |= static_cast<std::uint64_t>(static_cast<unsigned char>(line[byte]))
                         << (byte % 8 * 8);
    }
    if (!filter->bits_.merge_line(i, words.data())) {
      return fail("bits beyond the " + std::to_string(accepted->bits) + " of the filter");
    }
  }
  if (insertions > filter->set_bits()) {
    return fail(std::to_string(insertions) + " insertions in a filter of " +
                std::to_string(filter->set_bits()) + " set bits");
  }
  filter->insertions_ = insertions;
  return filter;
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
  return from_saved(saved->generations.front());
}

Result<BloomFilter> BloomFilter::load(const ReadBytes& read, std::uint64_t size) {
  constexpr std::size_t kPiece = 1024 * kLineBytes;
  std::string piece(kSavedLinesAt, '\0');
  if (auto done =
          size < saved_size_min() ? refuse_saved(std::to_string(size) + " bytes") : read(piece);
      !done) {
    return std::unexpected(done.error());
  }
  const auto head = decode_head(piece, {});
  if (!head) {
    return std::unexpected(head.error());
  }
  if (head->size != size) {
    return refuse_saved(std::to_string(size) + " bytes, expected " + std::to_string(head->size));
  }
  SavedGeneration saved = head->saved.generations.front();
  auto filter = create(saved.parameters);
  if (!filter) {
    return filter;
  }
  SavedChecksum checksum;
  checksum.add(piece);
  const std::uint64_t lines = filter->bits_.lines();
  for (std::uint64_t line = 0; line < lines;) {
    piece.resize(std::min<std::uint64_t>(kPiece, (lines - line) * kLineBytes));
    if (auto done = read(piece); !done) {
      return std::unexpected(done.error());
    }
    checksum.add(piece);
    saved.lines = piece;
    for (std::uint64_t i = 0; i < piece.size() / kLineBytes; ++i, ++line) {
      if (!filter->bits_.merge_line(line, saved_line(saved, i).data())) {
        return refuse_saved("bits beyond the end of the filter");
      }
    }
  }
  std::array<char, sizeof(std::uint64_t)> stated{};
  if (auto done = read(stated); !done) {
    return std::unexpected(done.error());
  }
  if (!checksum.is({stated.data(), stated.size()})) {
    return refuse_saved("the checksum does not match, the file is cut short or damaged");
  }
  if (filter->bits_.set_bits() != saved.set_bits) {
    return refuse_saved(std::to_string(filter->bits_.set_bits()) + " set bits, stated " +
                        std::to_string(saved.set_bits));
  }
  filter->insertions_ = saved.insertions;
  return filter;
}

BloomFilter BloomFilter::over(const SavedGeneration& saved, LineMemory memory) {
  BloomFilter filter(saved.parameters, std::move(memory));
  filter.bits_.set_bits_counter() = saved.set_bits;
  filter.insertions_ = saved.insertions;
  return filter;
}

Result<BloomFilter> BloomFilter::from_saved(const SavedGeneration& saved) {
  auto filter = create(saved.parameters);
  if (!filter) {
    return filter;
  }
  if (auto restored = restore(saved, filter->bits_); !restored) {
    return std::unexpected(restored.error());
  }
  filter->insertions_ = saved.insertions;
  return filter;
}

}  // namespace encore::filter

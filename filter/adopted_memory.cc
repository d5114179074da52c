#include "filter/adopted_memory.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "filter/alias.h"
#include "filter/joint_bits.h"
#include "filter/key_estimate.h"
#include "filter/saved_filter.h"
#include "filter/theory.h"

namespace encore::filter {
namespace {

constexpr std::size_t kShardsMax = 256;
// Lines that are read for the rates, over all shards.
constexpr std::uint64_t kLinesRead = std::uint64_t{1} << 16U;

Result<std::vector<SavedFilter>> decode_shards(const AdoptedMemory::Source& source) {
  if (!std::has_single_bit(source.shards.size()) || source.shards.size() > kShardsMax) {
    return fail("the memory of " + std::to_string(source.shards.size()) +
                " shards, accepted: a power of two up to " + std::to_string(kShardsMax));
  }
  std::vector<SavedFilter> shards;
  for (const std::string_view bytes : source.shards) {
    auto saved = decode(
        bytes,
        {.kind = SavedKind::kRing, .generations_min = 2, .generations_max = kGenerationsMax});
    if (!saved) {
      return fail("shard " + std::to_string(shards.size()) + ": " + saved.error().message);
    }
    if (saved->identity_seed != source.identity_seed) {
      return fail("shard " + std::to_string(shards.size()) + " was filled under another seed (" +
                  fingerprint(saved->identity_seed) + ", the others " +
                  fingerprint(source.identity_seed) + ")");
    }
    if (!shards.empty() && saved->generations.size() != shards.front().generations.size()) {
      return fail("shard " + std::to_string(shards.size()) + " has " +
                  std::to_string(saved->generations.size()) + " generations, the first " +
                  std::to_string(shards.front().generations.size()));
    }
    shards.push_back(std::move(*saved));
  }
  return shards;
}

// Set bits beyond all keys: as many as were inserted.
double keys_in(const FilterShape& shape, std::uint64_t set_bits, std::uint64_t insertions) {
  const double keys = keys_from_bits(shape, static_cast<double>(set_bits));
  return std::isfinite(keys) ? keys : static_cast<double>(insertions);
}

}  // namespace

Result<std::shared_ptr<const AdoptedMemory>> AdoptedMemory::load(const Source& source) {
  const auto shards = decode_shards(source);
  if (!shards) {
    return std::unexpected(shards.error());
  }
  std::shared_ptr<AdoptedMemory> adopted(new AdoptedMemory);
  adopted->identity_seed_ = source.identity_seed;
  if (auto done = adopted->restore(*shards); !done) {
    return std::unexpected(done.error());
  }
  adopted->read_rates();
  if (const double bits = adopted->fpr_.back().bits; bits > kAdoptedFprMax) {
    return fail("it answers yes to " + std::to_string(bits) +
                " of the keys that it was never told, accepted: up to " +
                std::to_string(kAdoptedFprMax));
  }
  return adopted;
}

Result<void> AdoptedMemory::restore(std::span<const SavedFilter> shards) {
  std::uint64_t lines = 0;
  for (const SavedFilter& shard : shards) {
    for (const SavedGeneration& generation : shard.generations) {
      lines += GenerationBits::lines_for(generation.parameters);
    }
  }
  auto memory = LineMemory::create(lines);
  if (!memory) {
    return std::unexpected(memory.error());
  }
  memory_ = std::move(*memory);
  std::uint64_t* words = memory_.words();
  sums_.resize(shards.front().generations.size());
  for (const SavedFilter& saved : shards) {
    Shard& shard = shards_.emplace_back();
    for (const SavedGeneration& generation : saved.generations) {
      const FilterParameters& parameters = generation.parameters;
      Generation& ours = shard.emplace_back(Generation{
          .parameters = parameters,
          .bits = GenerationBits(parameters, words, 1),
          .identity = parameters.hash == HashFamily::kXxh3 && parameters.seed == identity_seed_,
          .insertions = generation.insertions});
      words += kLineWords * GenerationBits::lines_for(parameters);
      if (auto done = filter::restore(generation, ours.bits); !done) {
        return fail("shard " + std::to_string(shards_.size() - 1) + ": " + done.error().message);
      }
    }
    sum_up(shard);
  }
  return {};
}

void AdoptedMemory::sum_up(const Shard& shard) {
  for (std::size_t i = 0; i < shard.size(); ++i) {
    const Generation& generation = shard[i];
    const std::uint64_t set_bits = generation.bits.set_bits();
    sums_[i].bits += generation.parameters.bits;
    sums_[i].insertions += generation.insertions;
    sums_[i].set_bits += set_bits;
    sums_[i].keys_estimated +=
        keys_in(generation.parameters.shape(), set_bits, generation.insertions);
  }
}

void AdoptedMemory::read_rates() {
  fpr_.assign(generations() + std::size_t{1}, {});
  const auto count = static_cast<double>(shards_.size());
  const std::uint64_t lines_max = std::max<std::uint64_t>(1, kLinesRead / shards_.size());
  std::vector<const GenerationBits*> together;
  for (const Shard& shard : shards_) {
    double theory = 0;
    double before = 0;  // by the bits, of the generations that are not of the last ones' make
    together.clear();
    for (std::uint32_t i = 0; i < shard.size(); ++i) {
      const Generation& generation = shard[i];
      const FilterShape shape = generation.parameters.shape();
      const auto insertions = static_cast<double>(generation.insertions);
      theory += (1 - theory) * filter::fpr(shape, effective_insertions(shape, insertions));
      const bool same_make =
          i != 0 && alike(generation.parameters, shard[i - 1].parameters, "asked together");
      if (!same_make || together.size() == kJointMax) {
        before = i == 0 ? 0 : before + (1 - before) * fpr_from_bits(together, lines_max);
        together.clear();
      }
      together.push_back(&generation.bits);
      fpr_[i + 1].theory += theory / count;
      fpr_[i + 1].bits += (before + (1 - before) * fpr_from_bits(together, lines_max)) / count;
    }
  }
}

bool AdoptedMemory::test(const HashedKey& key, std::uint32_t newest) const {
  // A key stays in one shard, under whichever alias.
  const Alias alias = read_alias(key.bytes);
  const Hash128 identity = hash_key(HashFamily::kXxh3, identity_seed_, alias.key);
  const Shard& shard = shards_[shard_of(identity, shards())];
  const Hash128 named = alias_hash(identity, alias.number);
  return std::ranges::any_of(std::span(shard).first(newest), [&](const Generation& generation) {
    const FilterParameters& parameters = generation.parameters;
    return generation.bits.test(
        generation.identity ? named : hash_key(parameters.hash, parameters.seed, key.bytes));
  });
}

}  // namespace encore::filter

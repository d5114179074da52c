#include "sim/replay/block_hash.h"

#include <array>

#include "base/check.h"

namespace encore::sim {
namespace {

using filter::HashFamily;

struct NamedBadHash {
  BadHash hash;
  std::string_view name;
};
constexpr std::array kBadHashes = {
    NamedBadHash{BadHash::kCut32, "cut32"},     NamedBadHash{BadHash::kPrng, "prng"},
    NamedBadHash{BadHash::kCrc32, "crc32"},     NamedBadHash{BadHash::kTrunc32, "trunc32"},
    NamedBadHash{BadHash::kStride0, "stride0"},
};
constexpr std::array kFamilies = {HashFamily::kXxh3, HashFamily::kMurmur3, HashFamily::kSiphash,
                                  HashFamily::kMd5,  HashFamily::kSha1,    HashFamily::kSha512};

bool is_digest(HashFamily family) {
  return family == HashFamily::kMd5 || family == HashFamily::kSha1 || family == HashFamily::kSha512;
}

std::uint32_t fnv1a32(std::span<const std::uint8_t> bytes) {
  std::uint32_t h = 2166136261U;
  for (const std::uint8_t byte : bytes) {
    h = (h ^ byte) * 16777619U;
  }
  return h;
}

std::uint32_t crc32(std::span<const std::uint8_t> bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) {
        c = (c & 1U) != 0 ? 0xedb88320U ^ (c >> 1U) : c >> 1U;
      }
      made[i] = c;
    }
    return made;
  }();
  std::uint32_t crc = 0xffffffffU;
  for (const std::uint8_t byte : bytes) {
    crc = table[(crc ^ byte) & 0xffU] ^ (crc >> 8U);
  }
  return ~crc;
}

void stride_indices(std::uint64_t first, std::uint64_t stride, std::uint64_t bits,
                    std::span<std::uint64_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = (first + i * stride) % bits;
  }
}

// Numerical Recipes' LCG: what a program reaches for that has rand() and no hash.
void lcg_indices(std::uint32_t state, std::uint64_t bits, std::span<std::uint64_t> out) {
  for (std::uint64_t& index : out) {
    state = state * 1664525U + 1013904223U;
    index = state % bits;
  }
}

}  // namespace

bool BlockHash::own_indices(bool classic) const {
  return bad != BadHash::kNone || lists_indices(family) || (classic && is_digest(family));
}

Result<BlockHash> parse_block_hash(std::string_view name) {
  std::string bad_names;
  for (const NamedBadHash& entry : kBadHashes) {
    if (entry.name == name) {
      return BlockHash{.family = HashFamily::kXxh3, .bad = entry.hash};
    }
    bad_names += ", " + std::string(entry.name);
  }
  const auto family = filter::parse_hash_family(name);
  if (!family) {
    return fail(family.error().message + ", and the bad ones" + bad_names.substr(1));
  }
  return BlockHash{.family = *family};
}

std::string to_string(const BlockHash& hash) {
  for (const NamedBadHash& entry : kBadHashes) {
    if (entry.hash == hash.bad) {
      return std::string(entry.name);
    }
  }
  return std::string(filter::to_string(hash.family));
}

std::vector<BlockHash> all_block_hashes() {
  std::vector<BlockHash> all;
  for (const HashFamily family : kFamilies) {
    all.push_back({.family = family});
  }
  for (const NamedBadHash& entry : kBadHashes) {
    all.push_back({.family = HashFamily::kXxh3, .bad = entry.hash});
  }
  return all;
}

void fill_indices(const BlockHash& hash, std::span<std::uint8_t> block, std::uint64_t bits,
                  std::span<std::uint64_t> out) {
  const std::string_view bytes(reinterpret_cast<const char*>(block.data()), block.size());
  switch (hash.bad) {
    case BadHash::kNone:
      if (lists_indices(hash.family)) {
        filter::key_indices(hash.family, {}, bytes, bits, out);
        return;
      }
      filter::overwriting_digest_indices(hash.family, block, bits, out);
      return;
    case BadHash::kCut32: {
      const std::uint32_t h = fnv1a32(block);
      stride_indices(h & 0xffffU, h >> 16U | 1U, bits, out);
      return;
    }
    case BadHash::kPrng: {
      std::uint16_t sum = 0;
      for (const std::uint8_t byte : block) {
        sum = static_cast<std::uint16_t>(sum + byte);
      }
      lcg_indices(sum, bits, out);
      return;
    }
    case BadHash::kCrc32: {
      const std::uint32_t h = crc32(block);
      stride_indices(h, h >> 16U | 1U, bits, out);
      return;
    }
    case BadHash::kTrunc32: {
      const auto h = static_cast<std::uint32_t>(filter::hash_key(HashFamily::kXxh3, {}, bytes).lo);
      stride_indices(h, h * 0x9e3779b97f4a7c15U >> 32U | 1U, bits, out);
      return;
    }
    case BadHash::kStride0:
      stride_indices(filter::hash_key(HashFamily::kXxh3, {}, bytes).lo, 0, bits, out);
      return;
  }
  ENCORE_CHECK(false, "a bad hash outside the enum");
}

}  // namespace encore::sim

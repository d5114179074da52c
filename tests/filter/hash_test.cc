#include "filter/hash.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <vector>

#include "filter/parameters.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"

namespace encore::filter {
namespace {

constexpr std::array kFamilies{HashFamily::kXxh3, HashFamily::kMurmur3, HashFamily::kSiphash,
                               HashFamily::kMd5,  HashFamily::kSha1,    HashFamily::kSha512};

Hash128 openssl_siphash(const Seed& seed, std::string_view bytes) {
  EVP_MAC* mac = EVP_MAC_fetch(nullptr, "SIPHASH", nullptr);
  EVP_MAC_CTX* context = EVP_MAC_CTX_new(mac);
  std::array<unsigned char, 16> key{};
  std::memcpy(key.data(), &seed.lo, 8);
  std::memcpy(key.data() + 8, &seed.hi, 8);
  std::size_t size = 16;
  const std::array<OSSL_PARAM, 2> parameters{
      OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size), OSSL_PARAM_construct_end()};
  std::array<unsigned char, 16> out{};
  REQUIRE(EVP_MAC_init(context, key.data(), key.size(), parameters.data()) == 1);
  EVP_MAC_update(context, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  REQUIRE(EVP_MAC_final(context, out.data(), &size, out.size()) == 1);
  EVP_MAC_CTX_free(context);
  EVP_MAC_free(mac);
  Hash128 hash;
  std::memcpy(&hash.lo, out.data(), 8);
  std::memcpy(&hash.hi, out.data() + 8, 8);
  return hash;
}

}  // namespace

TEST_CASE("hash families have names, and an unknown name shows the accepted ones", "[filter]") {
  for (int i = 0; i <= static_cast<int>(kLastFamily); ++i) {
    const auto family = static_cast<HashFamily>(i);
    CHECK(parse_hash_family(to_string(family)) == family);
  }
  const auto refused = parse_hash_family("xxh4");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "unknown hash family \"xxh4\", accepted: xxh3, murmur3, siphash, md5, sha1, sha512, "
        "chained, sha1-fields20, squid-md5, md5-fields, sha1-fields, sha256-fields, "
        "sha256-fields32, md5-numbered, sha1-numbered, sha256-numbered");
}

TEST_CASE("murmur3 is the published function where both halves of the seed are equal", "[filter]") {
  // MurmurHash3_x64_128, seed 0.
  CHECK(hash_key(HashFamily::kMurmur3, {}, "") == Hash128{0, 0});
  CHECK(hash_key(HashFamily::kMurmur3, {}, "hello") ==
        Hash128{0xcbd8a7b341bd9b02U, 0x5b1e906a48ae1d19U});
  CHECK(hash_key(HashFamily::kMurmur3, {}, "The quick brown fox jumps over the lazy dog") ==
        Hash128{0xe34bbc7bbc071b6cU, 0x7a433ca9c49a9347U});
}

TEST_CASE("siphash agrees with OpenSSL's at every length", "[filter]") {
  const Seed seed{0x0706050403020100U, 0x0f0e0d0c0b0a0908U};
  std::string text;
  for (int size = 0; size < 70; ++size) {
    CHECK(hash_key(HashFamily::kSiphash, seed, text) == openssl_siphash(seed, text));
    text.push_back(static_cast<char>(size * 7));
  }
}

TEST_CASE("a digest family is the digest itself where the seed is zero", "[filter]") {
  // MD5("abc") = 900150983cd24fb0 d6963f7d28e17f72
  CHECK(hash_key(HashFamily::kMd5, {}, "abc") == Hash128{0xb04fd23c98500190U, 0x727fe1287d3f96d6U});
  // SHA-1("abc") = a9993e364706816a ba3e25717850c26c ...
  CHECK(hash_key(HashFamily::kSha1, {}, "abc") ==
        Hash128{0x6a810647363e99a9U, 0x6cc2507871253ebaU});
  // SHA-512("abc") = ddaf35a193617aba cc417349ae204131 ...
  CHECK(hash_key(HashFamily::kSha512, {}, "abc") ==
        Hash128{0xba7a6193a135afddU, 0x314120ae497341ccU});
}

TEST_CASE("every family depends on every part of the seed and of the key", "[filter]") {
  for (const HashFamily family : kFamilies) {
    CAPTURE(to_string(family));
    const std::string key(40, 'k');
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
    const auto add = [&](const Seed& seed, std::string_view bytes) {
      const Hash128 hash = hash_key(family, seed, bytes);
      CHECK(hash == hash_key(family, seed, bytes));
      seen.insert({hash.lo, hash.hi});
    };
    add({1, 2}, key);
    add({2, 2}, key);
    add({1, 3}, key);
    for (std::size_t i = 0; i < key.size(); ++i) {
      std::string changed = key;
      changed[i] = 'K';
      add({1, 2}, changed);
      add({1, 2}, key.substr(0, i));
    }
    CHECK(seen.size() == 3 + 2 * key.size());
  }
}

TEST_CASE("indices of the worked example: MD5 of a counter byte before the key", "[filter]") {
  // md5("\0" "abc") and md5("\1" "abc"), by coreutils, as little-endian words.
  std::array<std::uint64_t, 6> indices{};
  digest_indices(HashFamily::kMd5, "abc", std::uint64_t{1} << 32U, indices);
  std::array<std::uint8_t, 4> block{0xff, 'a', 'b', 'c'};
  std::array<std::uint64_t, 6> overwritten{};
  overwriting_digest_indices(HashFamily::kMd5, block, std::uint64_t{1} << 32U, overwritten);
  CHECK(indices == overwritten);
  CHECK(block[0] == 1);
  const Hash128 first = hash_key(HashFamily::kMd5, {}, std::string_view("\0abc", 4));
  const Hash128 second = hash_key(HashFamily::kMd5, {}, std::string_view("\1abc", 4));
  CHECK(indices == std::array<std::uint64_t, 6>{first.lo & 0xffffffffU, first.lo >> 32U,
                                                first.hi & 0xffffffffU, first.hi >> 32U,
                                                second.lo & 0xffffffffU, second.lo >> 32U});
  digest_indices(HashFamily::kMd5, "abc", 1000, indices);
  CHECK(indices[0] == (first.lo & 0xffffffffU) % 1000);
}

TEST_CASE("128 indices of a key collide as often as random ones", "[filter][theory]") {
  // C(128, 2) / 2^20 * 10,000 keys = 77.5 pairs, standard deviation 8.8.
  for (const HashFamily family : {HashFamily::kMd5, HashFamily::kSha512}) {
    std::uint64_t collisions = 0;
    for (std::uint32_t i = 0; i < 10'000; ++i) {
      std::array<std::uint64_t, 128> indices{};
      digest_indices(family, testing::Key(1, i).bytes(), 1U << 20U, indices);
      std::ranges::sort(indices);
      for (std::size_t j = 1; j < indices.size(); ++j) {
        collisions += indices[j] == indices[j - 1] ? 1U : 0U;
      }
    }
    CHECK(collisions > 40);
    CHECK(collisions < 100);
  }
}

TEST_CASE("a seed is written and read as 32 hex digits, and never shown in an error", "[filter]") {
  const Seed seed{0x0123456789abcdefU, 0xfedcba9876543210U};
  CHECK(to_hex(seed) == "fedcba98765432100123456789abcdef");
  CHECK(parse_seed(to_hex(seed)) == seed);
  CHECK(parse_seed("ff") == Seed{255, 0});
  for (const char* bad : {"", "xyz", "0x12", "-1", "000000000000000000000000000000001",
                          "zfedcba987654321001234567890abcd"}) {
    CAPTURE(bad);
    const auto refused = parse_seed(bad);
    REQUIRE_FALSE(refused);
    CHECK((*bad == '\0' || refused.error().message.find(bad) == std::string::npos));
  }
}

TEST_CASE("a fingerprint tells seeds apart and says nothing of them", "[filter]") {
  const Seed seed{1, 2};
  CHECK(fingerprint(seed) == fingerprint(Seed{1, 2}));
  CHECK(fingerprint(seed) != fingerprint(Seed{2, 1}));
  CHECK(fingerprint(seed).size() == 16);
}

TEST_CASE("shards get equal shares, and the shadow's sample is independent of them", "[filter]") {
  std::array<std::uint32_t, 16> keys{};
  std::array<std::uint32_t, 16> sampled{};
  constexpr std::uint32_t kKeys = 160'000;
  for (std::uint32_t i = 0; i < kKeys; ++i) {
    const Hash128 hash = identify({7, 8}, testing::Key(2, i).bytes()).hash;
    const std::uint32_t shard = shard_of(hash, 16);
    ++keys[shard];
    sampled[shard] += sample_of(hash) < 0x10000U / 16 ? 1U : 0U;
  }
  for (std::size_t shard = 0; shard < keys.size(); ++shard) {
    CHECK(std::abs(testing::deviation(keys[shard], kKeys, 1.0 / 16)) < testing::kSigmas);
    CHECK(std::abs(testing::deviation(sampled[shard], keys[shard], 1.0 / 16)) < testing::kSigmas);
  }
  CHECK(shard_of(identify({}, "x").hash, 1) == 0);
}

TEST_CASE("sha1-fields20 takes the digest five hex digits at a time", "[filter]") {
  // SHA-1("jcgregorio") = b9cf2 471ff 6d335 04caf e8e6f 356b7 32b2c adced
  std::array<std::uint64_t, 8> indices{};
  key_indices(HashFamily::kSha1Fields20, {}, "jcgregorio", 30'000, indices);
  CHECK(indices ==
        std::array<std::uint64_t, 8>{11074, 21327, 27285, 19631, 23967, 8807, 27660, 21917});
  key_indices(HashFamily::kSha1Fields20, {}, "barney", kFields20Bits, indices);
  CHECK(indices == std::array<std::uint64_t, 8>{0x1ee77, 0x60a31, 0x90c95, 0x64144, 0x2f2be,
                                                0x0ef77, 0x74e13, 0x9fb1f});
}

namespace {

std::vector<std::uint64_t> listed(HashFamily family, std::string_view key, std::uint64_t bits,
                                  std::size_t hashes) {
  std::vector<std::uint64_t> indices(hashes);
  key_indices(family, {}, key, bits, indices);
  return indices;
}

using Listed = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("the lecture's four keys set the bits that spell 0x9e64", "[filter]") {
  // MD5 of these begins with 292, bcf, 655 and faa: three fields of four bits each.
  std::uint32_t bits = 0;
  for (const char* key : {"7217", "4568", "1569", "423"}) {
    for (const std::uint64_t index : listed(HashFamily::kMd5Fields, key, 16, 3)) {
      bits |= 1U << index;
    }
  }
  CHECK(bits == 0x9e64);
  CHECK(listed(HashFamily::kMd5Fields, "7217", 16, 3) == Listed{2, 9, 2});
  CHECK(listed(HashFamily::kMd5Fields, "4568", 16, 3) == Listed{11, 12, 15});
}

TEST_CASE("fields of a digest begin at its most significant bit", "[filter]") {
  // Python: n = int(hashlib.new(h, key).hexdigest(), 16);
  // [(n >> size - w * (i + 1)) % 2**w % m for i in range(k)], w = (m - 1).bit_length()
  const std::string_view key = "jcgregorio";
  CHECK(listed(HashFamily::kMd5Fields, key, 1000, 12) ==
        Listed{373, 554, 416, 516, 205, 134, 854, 842, 209, 723, 971, 782});
  CHECK(listed(HashFamily::kMd5Fields, key, 800'000, 6) ==
        Listed{382506, 426500, 210054, 75338, 214739, 195086});
  CHECK(listed(HashFamily::kSha1Fields, key, 16, 32) ==
        Listed{11, 9,  12, 15, 2,  4, 7,  1, 15, 15, 6, 13, 3,  3, 5, 0,
               4,  12, 10, 15, 14, 8, 14, 6, 15, 3,  5, 6,  11, 7, 3, 2});
  CHECK(listed(HashFamily::kSha1Fields, key, kBitsMax, 3) ==
        Listed{3192176887805, 3106150861566, 2447004511692});
  CHECK(listed(HashFamily::kSha256Fields, key, 1000, 12) ==
        Listed{619, 624, 255, 107, 180, 473, 604, 407, 975, 887, 2, 279});
  CHECK(listed(HashFamily::kSha256Fields, key, 65'536, 8) ==
        Listed{39655, 1020, 27437, 7577, 29079, 62455, 32681, 6104});
  CHECK(listed(HashFamily::kSha256Fields32, key, 800'000, 8) ==
        Listed{431100, 518809, 183799, 188120, 421618, 557405, 566954, 5626});
  CHECK(listed(HashFamily::kSha256Fields32, "barney", std::uint64_t{1} << 32U, 8) ==
        Listed{648041328, 1631375190, 3238911012, 971184604, 2156571085, 350916123, 1690165500,
               1613577373});
  CHECK(listed(HashFamily::kMd5Fields, key, 1, 5) == Listed{0, 0, 0, 0, 0});
}

TEST_CASE("a numbered digest is one of the number before the key", "[filter]") {
  // Python: [int(hashlib.new(h, str(i) + key).hexdigest(), 16) % m for i in range(k)]
  const std::string_view key = "jcgregorio";
  CHECK(listed(HashFamily::kMd5Numbered, key, 1000, 12) ==
        Listed{754, 716, 102, 454, 731, 632, 212, 544, 42, 799, 799, 6});
  CHECK(listed(HashFamily::kSha1Numbered, key, 1000, 12) ==
        Listed{347, 734, 847, 285, 837, 292, 685, 430, 610, 155, 544, 96});
  CHECK(listed(HashFamily::kSha256Numbered, key, 1000, 12) ==
        Listed{649, 763, 228, 855, 78, 839, 759, 959, 204, 30, 294, 23});
  CHECK(listed(HashFamily::kMd5Numbered, "barney", kBitsMax, 2) ==
        Listed{4296867213419, 3309036718266});
  CHECK(listed(HashFamily::kSha1Numbered, "barney", 800'001, 3) == Listed{233136, 145434, 110722});
  CHECK(listed(HashFamily::kSha256Numbered, "barney", kBitsMax, 2) ==
        Listed{1296595864242, 3030594030544});
}

TEST_CASE("of chained values each is the seed of the next", "[filter]") {
  const Seed seed{11, 22};
  std::array<std::uint64_t, 9> indices{};
  key_indices(HashFamily::kChained, seed, "a key", 1000, indices);
  std::uint64_t value = seed.lo ^ std::rotl(seed.hi, 32);
  for (const std::uint64_t index : indices) {
    value = XXH3_64bits_withSeed("a key", 5, value);
    CHECK(index == scaled(value, 1000));
  }
  std::array<std::uint64_t, 4> fewer{};
  key_indices(HashFamily::kChained, seed, "a key", 1000, fewer);
  CHECK(std::equal(fewer.begin(), fewer.end(), indices.begin()));
}

TEST_CASE("hashes that list indices ask for a classic filter within their reach", "[filter]") {
  const FilterParameters good{.layout = Layout::kClassic,
                              .hash = HashFamily::kSha1Fields20,
                              .bits = kFields20Bits,
                              .hashes = kFields20Max,
                              .capacity = 1,
                              .seed = {}};
  const auto refusal = [&](auto change) {
    FilterParameters changed = good;
    change(changed);
    const auto accepted = checked(changed);
    return accepted ? std::string("none") : accepted.error().message;
  };
  CHECK(refusal([](auto&) {}) == "none");
  CHECK(refusal([](auto& p) {
          p.hash = HashFamily::kChained, p.bits = kBitsMax, p.hashes = 100;
        }) == "none");
  CHECK(refusal([](auto& p) {
          p.bits += 1;
        }).starts_with("hash sha1-fields20 with 1048577 bits, accepted: 1 to 1048576"));
  CHECK(refusal([](auto& p) {
          p.hashes = 9;
        }).starts_with("hash sha1-fields20 with 9 hashes, accepted: 1 to 8"));
  CHECK(refusal([](auto& p) { p.seed.hi = 1; }).starts_with("hash sha1-fields20 with a seed"));
  CHECK(refusal([](auto& p) { p.layout = Layout::kPartitioned; }) ==
        "hash sha1-fields20 with layout partitioned, accepted: classic");
  CHECK(refusal([](auto& p) { p.hash = HashFamily::kChained, p.layout = Layout::kBlocked; }) ==
        "hash chained with layout blocked, accepted: classic");
}

TEST_CASE("a digest with too few fields says how many fit", "[filter]") {
  struct Limit {
    HashFamily family;
    std::uint64_t bits;
    std::uint32_t most;
    std::string message;
  };
  for (const Limit& limit :
       {Limit{HashFamily::kMd5Fields, 1U << 20U, 6,
              "the fields of 20 bits that a digest of 128 has"},
        Limit{HashFamily::kMd5Fields, (1U << 20U) + 1, 6,
              "the fields of 21 bits that a digest of 128 has"},
        Limit{HashFamily::kMd5Fields, 2, 128, "the fields of 1 bits that a digest of 128 has"},
        Limit{HashFamily::kSha1Fields, 16, 40, "the fields of 4 bits that a digest of 160 has"},
        Limit{HashFamily::kSha256Fields, kBitsMax, 6,
              "the fields of 42 bits that a digest of 256 has"},
        Limit{HashFamily::kSha256Fields32, 1000, 8,
              "the fields of 32 bits that a digest of 256 has"}}) {
    CAPTURE(to_string(limit.family), limit.bits);
    FilterParameters parameters{.layout = Layout::kClassic,
                                .hash = limit.family,
                                .bits = limit.bits,
                                .hashes = limit.most,
                                .capacity = 1,
                                .seed = {}};
    CHECK(checked(parameters).has_value());
    ++parameters.hashes;
    const auto refused = checked(parameters);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message == "hash " + std::string(to_string(limit.family)) + " with " +
                                         std::to_string(limit.most + 1) +
                                         " hashes, accepted: 1 to " + std::to_string(limit.most) +
                                         ", " + limit.message +
                                         "; a numbered hash, as sha1-numbered, has any number");
    parameters.hashes = 1;
    parameters.seed.lo = 1;
    CHECK_FALSE(checked(parameters).has_value());
  }
  FilterParameters reach{.layout = Layout::kClassic,
                         .hash = HashFamily::kSha256Fields32,
                         .bits = (std::uint64_t{1} << 32U) + 1,
                         .hashes = 1,
                         .capacity = 1,
                         .seed = {}};
  CHECK(checked(reach).error().message ==
        "hash sha256-fields32 with 4294967297 bits, accepted: 1 to 4294967296, what a field "
        "reaches");
  reach.hash = HashFamily::kSha256Numbered;
  reach.hashes = kHashesMax;
  CHECK(checked(reach).has_value());
}

}  // namespace encore::filter

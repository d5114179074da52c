#include "filter/saved_filter.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "filter/joint_bits.h"

namespace encore::filter {
namespace {

constexpr std::string_view kMagic = "ENCBLOOM";
constexpr std::uint32_t kVersion = 2;
// Without the positions that theory expects: those are then read from the bits.
constexpr std::uint32_t kVersionWithoutTheory = 1;
constexpr std::size_t kChecksumBytes = 8;
// magic, version, kind, generations, four bytes of nothing, seed, three totals, age
constexpr std::size_t kHeaderBytes = 8 + 4 * 4 + 16 + 4 * 8;
// layout, hash, two bytes of nothing, k, m, capacity, seed, insertions, set bits
constexpr std::size_t kGenerationBytes = 4 + 4 + 8 + 8 + 16 + 8 + 8;

template <typename T>
void put(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    out.push_back(static_cast<char>(value >> (8 * i) & 0xffU));
  }
}

// Reads numbers from the front. The caller has made sure that there are enough bytes.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <typename T>
  T take() {
    T value = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) {
      value |= static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes_[i])) << (8 * i));
    }
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  Seed take_seed() {
    const auto lo = take<std::uint64_t>();
    return {lo, take<std::uint64_t>()};
  }

 private:
  std::string_view bytes_;
};

void put_header(std::string& out, const SavedFilter& saved) {
  out += kMagic;
  put(out, kVersion);
  put(out, static_cast<std::uint32_t>(saved.kind));
  put(out, static_cast<std::uint32_t>(saved.generations.size()));
  put(out, std::uint32_t{0});
  put(out, saved.identity_seed.lo);
  put(out, saved.identity_seed.hi);
  for (const std::uint64_t total :
       {saved.insertions, saved.refreshes, saved.rotations, saved.age_ns}) {
    put(out, total);
  }
}

void put_generation(std::string& out, const SavedGeneration& generation) {
  const FilterParameters& parameters = generation.parameters;
  out.push_back(static_cast<char>(parameters.layout));
  out.push_back(static_cast<char>(parameters.hash));
  out.append(2, '\0');
  put(out, parameters.hashes);
  for (const std::uint64_t number :
       {parameters.bits, parameters.capacity, parameters.seed.lo, parameters.seed.hi,
        generation.insertions, generation.set_bits}) {
    put(out, number);
  }
}

void put_lines(std::string& out, const GenerationBits& bits) {
  std::array<std::uint64_t, kLineWords> words{};
  std::array<char, kLineBytes> bytes{};
  for (std::uint64_t i = 0; i < bits.lines(); ++i) {
    bits.read_line(i, words.data());
    if constexpr (std::endian::native == std::endian::big) {
      std::ranges::transform(words, words.begin(), [](auto word) { return std::byteswap(word); });
    }
    std::memcpy(bytes.data(), words.data(), kLineBytes);
    out.append(bytes.data(), bytes.size());
  }
}

std::uint64_t line_bytes(const FilterParameters& parameters) {
  return GenerationBits::lines_for(parameters) * kLineBytes;
}

// Of a ring of so many generations.
std::size_t positions_bytes(std::uint32_t generations) {
  return sizeof(std::uint64_t) << std::min(generations, kJointMax);
}

std::unexpected<Error> damaged(const std::string& what) {
  return fail("saved filter refused: " + what);
}

Result<SavedGeneration> take_generation(Reader& reader, std::uint64_t bits_max) {
  SavedGeneration generation;
  FilterParameters& parameters = generation.parameters;
  const auto layout = reader.take<std::uint8_t>();
  const auto hash = reader.take<std::uint8_t>();
  const auto padding = reader.take<std::uint16_t>();
  parameters.hashes = reader.take<std::uint32_t>();
  parameters.bits = reader.take<std::uint64_t>();
  parameters.capacity = reader.take<std::uint64_t>();
  parameters.seed = reader.take_seed();
  generation.insertions = reader.take<std::uint64_t>();
  generation.set_bits = reader.take<std::uint64_t>();
  if (layout > static_cast<std::uint8_t>(Layout::kSplit) ||
      hash > static_cast<std::uint8_t>(HashFamily::kSha512) || padding != 0) {
    return damaged("unknown layout " + std::to_string(layout) + " or hash " + std::to_string(hash));
  }
  parameters.layout = static_cast<Layout>(layout);
  parameters.hash = static_cast<HashFamily>(hash);
  if (parameters.bits > bits_max) {
    return damaged("a generation of " + std::to_string(parameters.bits) +
                   " bits, accepted: " + std::to_string(bits_max));
  }
  const auto accepted = checked(parameters);
  if (!accepted) {
    return damaged(accepted.error().message);
  }
  if (*accepted != parameters) {
    return damaged("a size of " + std::to_string(parameters.bits) +
                   " bits, which its layout cannot have");
  }
  // An insertion is what set a bit at least.
  if (generation.set_bits > parameters.bits || generation.insertions > generation.set_bits) {
    return damaged("more insertions than set bits, or more of those than bits");
  }
  return generation;
}

// Shares of one whole, nearly: each was rounded.
Result<std::vector<double>> take_positions(std::string_view bytes) {
  std::vector<double> positions;
  double sum = 0;
  for (Reader reader(bytes); positions.size() < bytes.size() / sizeof(double);) {
    const auto share = std::bit_cast<double>(reader.take<std::uint64_t>());
    if (!(share >= 0 && share <= 1.001)) {
      return damaged("a share of the positions outside 0 to 1");
    }
    positions.push_back(share);
    sum += share;
  }
  if (!positions.empty() && std::abs(sum - 1) > 1e-3) {
    return damaged("shares of the positions that do not add up to 1");
  }
  return positions;
}

}  // namespace

std::uint64_t saved_checksum(std::string_view bytes) {
  ENCORE_CHECK(bytes.size() >= kChecksumBytes, "no room for a checksum");
  return XXH3_64bits(bytes.data(), bytes.size() - kChecksumBytes);
}

std::string encode(const SavedFilter& saved, const std::vector<const GenerationBits*>& bits) {
  ENCORE_CHECK(saved.generations.size() == bits.size(), "bits for each generation");
  std::size_t size = kHeaderBytes + kChecksumBytes;
  for (const SavedGeneration& generation : saved.generations) {
    size += kGenerationBytes + line_bytes(generation.parameters);
  }
  std::string out;
  size += saved.positions.size() * sizeof(double);
  out.reserve(size);
  put_header(out, saved);
  for (const SavedGeneration& generation : saved.generations) {
    put_generation(out, generation);
  }
  for (const GenerationBits* generation : bits) {
    put_lines(out, *generation);
  }
  for (const double share : saved.positions) {
    put(out, std::bit_cast<std::uint64_t>(share));
  }
  out.append(kChecksumBytes, '\0');
  const std::uint64_t checksum = saved_checksum(out);
  out.resize(out.size() - kChecksumBytes);
  put(out, checksum);
  return out;
}

Result<SavedFilter> decode(std::string_view bytes, const DecodeLimits& limits) {
  if (bytes.size() < kHeaderBytes + kChecksumBytes || !bytes.starts_with(kMagic)) {
    return damaged("not a saved filter (" + std::to_string(bytes.size()) + " bytes)");
  }
  Reader reader(bytes.substr(kMagic.size()));
  const auto version = reader.take<std::uint32_t>();
  if (version != kVersion && version != kVersionWithoutTheory) {
    return damaged("version " + std::to_string(version) + ", accepted: " +
                   std::to_string(kVersionWithoutTheory) + ", " + std::to_string(kVersion));
  }
  if (Reader(bytes.substr(bytes.size() - kChecksumBytes)).take<std::uint64_t>() !=
      saved_checksum(bytes)) {
    return damaged("the checksum does not match, the file is cut short or damaged");
  }
  SavedFilter saved;
  const auto kind = reader.take<std::uint32_t>();
  const auto count = reader.take<std::uint32_t>();
  if (kind != static_cast<std::uint32_t>(limits.kind)) {
    return damaged("kind " + std::to_string(kind) + ", expected " +
                   std::to_string(static_cast<std::uint32_t>(limits.kind)));
  }
  if (reader.take<std::uint32_t>() != 0 || count < limits.generations_min ||
      count > limits.generations_max ||
      bytes.size() < kHeaderBytes + count * kGenerationBytes + kChecksumBytes) {
    return damaged(std::to_string(count) + " generations in " + std::to_string(bytes.size()) +
                   " bytes");
  }
  saved.kind = limits.kind;
  saved.identity_seed = reader.take_seed();
  saved.insertions = reader.take<std::uint64_t>();
  saved.refreshes = reader.take<std::uint64_t>();
  saved.rotations = reader.take<std::uint64_t>();
  saved.age_ns = reader.take<std::uint64_t>();
  // kBitsMax bits in at most 16 generations: the sum stays far below 2^64.
  std::uint64_t lines_size = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    auto generation = take_generation(reader, std::min(limits.bits_max, kBitsMax));
    if (!generation) {
      return std::unexpected(generation.error());
    }
    lines_size += line_bytes(generation->parameters);
    saved.generations.push_back(*generation);
  }
  const std::size_t lines_start = kHeaderBytes + count * kGenerationBytes;
  const bool has_positions = version == kVersion && saved.kind == SavedKind::kRing;
  const std::size_t expected =
      lines_start + lines_size + (has_positions ? positions_bytes(count) : 0) + kChecksumBytes;
  if (bytes.size() != expected) {
    return damaged(std::to_string(bytes.size()) + " bytes, expected " + std::to_string(expected));
  }
  std::size_t at = lines_start;
  for (SavedGeneration& generation : saved.generations) {
    generation.lines = bytes.substr(at, line_bytes(generation.parameters));
    at += generation.lines.size();
  }
  auto positions = take_positions(bytes.substr(at, bytes.size() - kChecksumBytes - at));
  if (!positions) {
    return std::unexpected(positions.error());
  }
  saved.positions = std::move(*positions);
  return saved;
}

Result<void> restore(const SavedGeneration& saved, GenerationBits& bits) {
  std::array<std::uint64_t, kLineWords> words{};
  for (std::uint64_t i = 0; i < bits.lines(); ++i) {
    Reader reader(saved.lines.substr(i * kLineBytes, kLineBytes));
    for (std::uint64_t& word : words) {
      word = reader.take<std::uint64_t>();
    }
    if (!bits.merge_line(i, words.data())) {
      return damaged("bits beyond the end of the filter");
    }
  }
  if (bits.set_bits() != saved.set_bits) {
    return damaged(std::to_string(bits.set_bits()) + " set bits, stated " +
                   std::to_string(saved.set_bits));
  }
  return {};
}

}  // namespace encore::filter

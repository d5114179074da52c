#include "filter/saved_filter.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
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
// magic, version, kind, generations, state, seed, three totals, age
constexpr std::size_t kHeaderBytes = 8 + 4 * 4 + 16 + 4 * 8;
// capacity, rate, growth, tightening
constexpr std::size_t kGrowthBytes = 4 * 8;
// layout, hash, two bytes of nothing, k, m, capacity, seed, insertions, set bits
constexpr std::size_t kGenerationBytes = 4 + 4 + 8 + 8 + 16 + 8 + 8;

static_assert(kSavedLinesAt == kHeaderBytes + kGenerationBytes && kSavedLinesAt % kLineBytes == 0);

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

void put_line(std::string& out, std::array<std::uint64_t, kLineWords> words) {
  if constexpr (std::endian::native == std::endian::big) {
    std::ranges::transform(words, words.begin(), [](auto word) { return std::byteswap(word); });
  }
  std::array<char, kLineBytes> bytes{};
  std::memcpy(bytes.data(), words.data(), kLineBytes);
  out.append(bytes.data(), bytes.size());
}

void put_head(std::string& out, const SavedFilter& saved) {
  put_header(out, saved);
  for (const SavedGeneration& generation : saved.generations) {
    put_generation(out, generation);
  }
}

void put_growth(std::string& out, const SavedGrowth& growth) {
  put(out, growth.capacity);
  for (const double number : {growth.fpr, growth.growth, growth.tightening}) {
    put(out, std::bit_cast<std::uint64_t>(number));
  }
}

constexpr std::uint64_t kCounterBits = 4;

// Bytes of a generation's lines. (kBitsMax counters stay far below 2^64.)
std::uint64_t line_bytes(SavedKind kind, const FilterParameters& parameters) {
  const std::uint64_t bits = parameters.bits * (kind == SavedKind::kCounting ? kCounterBits : 1);
  return (bits + kLineBits - 1) / kLineBits * kLineBytes;
}

// Bytes of the positions of a ring of N generations.
std::size_t positions_bytes(std::uint32_t generations) {
  return sizeof(std::uint64_t) << std::min(generations, kJointMax);
}

// Bytes of the data after the lines.
std::size_t tail_bytes(SavedKind kind, std::uint32_t version, std::uint32_t generations) {
  if (kind == SavedKind::kScalable) {
    return kGrowthBytes;
  }
  return kind == SavedKind::kRing && version == kVersion ? positions_bytes(generations) : 0;
}

std::unexpected<Error> damaged(const std::string& what) { return refuse_saved(what); }

// True if this is a saved form of a version that is known.
bool is_known_version(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || !bytes.starts_with(kMagic)) {
    return false;
  }
  const auto version = Reader(bytes.substr(kMagic.size())).take<std::uint32_t>();
  return version == kVersion || version == kVersionWithoutTheory;
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
      hash > static_cast<std::uint8_t>(kLastFamily) || padding != 0) {
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

SavedGrowth take_growth(Reader reader) {
  SavedGrowth growth;
  growth.capacity = reader.take<std::uint64_t>();
  for (double* number : {&growth.fpr, &growth.growth, &growth.tightening}) {
    *number = std::bit_cast<double>(reader.take<std::uint64_t>());
  }
  return growth;
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

// Reads the description of each generation, without its lines; returns the size of the lines.
Result<std::uint64_t> take_generations(Reader& reader, std::uint32_t count,
                                       const DecodeLimits& limits, SavedFilter& saved) {
  // kBitsMax bits in at most 1024 generations: the sum stays far below 2^64.
  std::uint64_t lines_size = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    auto generation = take_generation(reader, std::min(limits.bits_max, kBitsMax));
    if (!generation) {
      return std::unexpected(generation.error());
    }
    if (saved.kind == SavedKind::kRing && lists_indices(generation->parameters.hash)) {
      return damaged("a ring by a hash that lists indices");
    }
    lines_size += line_bytes(saved.kind, generation->parameters);
    saved.generations.push_back(*generation);
  }
  return lines_size;
}

}  // namespace

std::unexpected<Error> refuse_saved(const std::string& what) {
  return fail("saved filter refused: " + what);
}

std::array<std::uint64_t, kLineWords> saved_line(const SavedGeneration& saved, std::uint64_t i) {
  std::array<std::uint64_t, kLineWords> words{};
  Reader reader(saved.lines.substr(i * kLineBytes, kLineBytes));
  for (std::uint64_t& word : words) {
    word = reader.take<std::uint64_t>();
  }
  return words;
}

std::uint64_t saved_checksum(std::string_view bytes) {
  ENCORE_CHECK(bytes.size() >= kChecksumBytes, "no room for a checksum");
  return XXH3_64bits(bytes.data(), bytes.size() - kChecksumBytes);
}

SavedChecksum::SavedChecksum() : state_(XXH3_createState()) {
  ENCORE_CHECK(state_ != nullptr, "memory for a checksum");
  XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_));
}

SavedChecksum::~SavedChecksum() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }

void SavedChecksum::add(std::string_view bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}

bool SavedChecksum::is(std::string_view stated) const {
  return Reader(stated).take<std::uint64_t>() ==
         XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_));
}

std::string encode_head(const SavedFilter& saved) {
  std::string out;
  put_head(out, saved);
  return out;
}

std::uint64_t saved_size_min() {
  return kHeaderBytes + kGenerationBytes + kLineBytes + kChecksumBytes;
}

std::uint64_t saved_size(const FilterParameters& parameters) {
  return kHeaderBytes + kGenerationBytes + line_bytes(SavedKind::kSingle, parameters) +
         kChecksumBytes;
}

Result<void> verify_lines(const SavedGeneration& saved) {
  const std::uint64_t bits = saved.parameters.bits;
  std::uint64_t set_bits = 0;
  for (std::uint64_t i = 0; i < saved.lines.size() / kLineBytes; ++i) {
    for (const std::uint64_t word : saved_line(saved, i)) {
      set_bits += static_cast<std::uint64_t>(std::popcount(word));
    }
  }
  // The last line is the one that may be longer than the filter.
  const std::uint64_t last = bits / kLineBits;
  if (bits % kLineBits != 0) {
    const auto line = saved_line(saved, last);
    for (std::uint64_t bit = bits % kLineBits; bit < kLineBits; ++bit) {
      if ((line[bit / 64] >> (bit % 64) & 1U) != 0) {
        return damaged("bits beyond the end of the filter");
      }
    }
  }
  if (set_bits != saved.set_bits) {
    return damaged(std::to_string(set_bits) + " set bits, stated " +
                   std::to_string(saved.set_bits));
  }
  return {};
}

Result<SavedKind> saved_kind(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || !bytes.starts_with(kMagic)) {
    return damaged("not a saved filter (" + std::to_string(bytes.size()) + " bytes)");
  }
  const auto kind = Reader(bytes.substr(kMagic.size() + sizeof kVersion)).take<std::uint32_t>();
  switch (static_cast<SavedKind>(kind)) {
    case SavedKind::kSingle:
    case SavedKind::kRing:
    case SavedKind::kScalable:
    case SavedKind::kCounting:
      return static_cast<SavedKind>(kind);
  }
  return damaged("unknown kind " + std::to_string(kind));
}

std::string encode(const SavedFilter& saved, const std::vector<const GenerationBits*>& bits) {
  std::vector<ReadLine> reads;
  reads.reserve(bits.size());
  for (const GenerationBits* each : bits) {
    reads.emplace_back(
        [each](std::uint64_t i, std::uint64_t* words) { each->read_line(i, words); });
  }
  return encode(saved, std::span<const ReadLine>(reads));
}

std::string encode(const SavedFilter& saved, std::span<const ReadLine> reads) {
  std::size_t size = kHeaderBytes + kChecksumBytes + saved.positions.size() * sizeof(double);
  for (const SavedGeneration& generation : saved.generations) {
    size += kGenerationBytes + line_bytes(saved.kind, generation.parameters);
  }
  ENCORE_CHECK(saved.generations.size() == reads.size(), "lines of each generation");
  std::string out;
  out.reserve(size + kGrowthBytes);
  put_head(out, saved);
  std::array<std::uint64_t, kLineWords> words{};
  for (std::size_t g = 0; g < reads.size(); ++g) {
    const std::uint64_t lines =
        line_bytes(saved.kind, saved.generations[g].parameters) / kLineBytes;
    for (std::uint64_t i = 0; i < lines; ++i) {
      reads[g](i, words.data());
      put_line(out, words);
    }
  }
  for (const double share : saved.positions) {
    put(out, std::bit_cast<std::uint64_t>(share));
  }
  if (saved.kind == SavedKind::kScalable) {
    put_growth(out, saved.growth);
  }
  out.append(kChecksumBytes, '\0');
  const std::uint64_t checksum = saved_checksum(out);
  out.resize(out.size() - kChecksumBytes);
  put(out, checksum);
  return out;
}

Result<SavedHead> decode_head(std::string_view bytes, const DecodeLimits& limits) {
  if (bytes.size() < kHeaderBytes + kChecksumBytes || !bytes.starts_with(kMagic)) {
    return damaged("not a saved filter (" + std::to_string(bytes.size()) + " bytes)");
  }
  Reader reader(bytes.substr(kMagic.size()));
  SavedHead head;
  head.version = reader.take<std::uint32_t>();
  if (head.version != kVersion && head.version != kVersionWithoutTheory) {
    return damaged("version " + std::to_string(head.version) + ", accepted: " +
                   std::to_string(kVersionWithoutTheory) + ", " + std::to_string(kVersion));
  }
  SavedFilter& saved = head.saved;
  const auto kind = reader.take<std::uint32_t>();
  const auto count = reader.take<std::uint32_t>();
  if (kind != static_cast<std::uint32_t>(limits.kind)) {
    return damaged("kind " + std::to_string(kind) + ", expected " +
                   std::to_string(static_cast<std::uint32_t>(limits.kind)));
  }
  const auto state = static_cast<SavedState>(reader.take<std::uint32_t>());
  if (state != SavedState::kWhole &&
      !(state == SavedState::kBeingWritten && limits.may_be_marked)) {
    return damaged("it was being written, and whoever wrote it did not come to an end");
  }
  head.lines_at = kHeaderBytes + std::uint64_t{count} * kGenerationBytes;
  if (count < limits.generations_min || count > limits.generations_max ||
      bytes.size() < head.lines_at) {
    return damaged(std::to_string(count) + " generations in " + std::to_string(bytes.size()) +
                   " bytes");
  }
  saved.kind = limits.kind;
  saved.identity_seed = reader.take_seed();
  saved.insertions = reader.take<std::uint64_t>();
  saved.refreshes = reader.take<std::uint64_t>();
  saved.rotations = reader.take<std::uint64_t>();
  saved.age_ns = reader.take<std::uint64_t>();
  const auto lines_size = take_generations(reader, count, limits, saved);
  if (!lines_size) {
    return std::unexpected(lines_size.error());
  }
  head.size =
      head.lines_at + *lines_size + tail_bytes(saved.kind, head.version, count) + kChecksumBytes;
  return head;
}

Result<std::uint64_t> stated_size(std::string_view bytes) {
  const auto kind = saved_kind(bytes);
  if (!kind) {
    return std::unexpected(kind.error());
  }
  const auto head = decode_head(bytes, {.kind = *kind, .generations_max = kSavedGenerationsMax});
  return head ? Result<std::uint64_t>(head->size) : std::unexpected(head.error());
}

// The checksum is asked before anything that it guards is believed, but for the kind of file.
Result<SavedFilter> decode(std::string_view bytes, const DecodeLimits& limits) {
  auto head = decode_head(bytes, limits);
  const bool guarded =
      limits.whole && bytes.size() >= kHeaderBytes + kChecksumBytes && is_known_version(bytes);
  if (guarded && Reader(bytes.substr(bytes.size() - kChecksumBytes)).take<std::uint64_t>() !=
                     saved_checksum(bytes)) {
    return damaged("the checksum does not match, the file is cut short or damaged");
  }
  if (!head) {
    return std::unexpected(head.error());
  }
  if (bytes.size() != head->size) {
    return damaged(std::to_string(bytes.size()) + " bytes, expected " + std::to_string(head->size));
  }
  SavedFilter& saved = head->saved;
  std::size_t at = head->lines_at;
  for (SavedGeneration& generation : saved.generations) {
    generation.lines = bytes.substr(at, line_bytes(saved.kind, generation.parameters));
    at += generation.lines.size();
  }
  if (!limits.whole) {
    return saved;
  }
  const std::string_view tail = bytes.substr(at, bytes.size() - kChecksumBytes - at);
  if (saved.kind == SavedKind::kScalable) {
    saved.growth = take_growth(Reader(tail));
    return saved;
  }
  auto positions = take_positions(tail);
  if (!positions) {
    return std::unexpected(positions.error());
  }
  saved.positions = std::move(*positions);
  return saved;
}

Result<void> restore(const SavedGeneration& saved, GenerationBits& bits) {
  for (std::uint64_t i = 0; i < bits.lines(); ++i) {
    if (!bits.merge_line(i, saved_line(saved, i).data())) {
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

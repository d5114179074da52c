// The saved form of filters: what save() writes and load() reads. Pure functions, thread-safe.
//
//   "ENCBLOOM"  version  kind  count of generations  state  identity seed  totals  age
//   for each generation: layout, hash, k, m, capacity, seed, insertions, set bits
//   for each generation: its lines, 64 bytes each; of a counting filter its counters, four bits
//   each a ring, from version 2 on: the positions that theory expects in each set of generations
//   (RingTheory::positions), as 64-bit floating-point numbers
//   a scalable filter: the first slice's capacity, rate, growth and tightening, eight bytes each
//   XXH3 (64 bits) of all of the above
//
// Every number is little-endian and of fixed width. The size follows from the header and must be
// exact, so nothing is allocated that the bytes at hand do not already account for.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "filter/generation_bits.h"
#include "filter/parameters.h"

namespace encore::filter {

enum class SavedKind : std::uint32_t { kSingle = 1, kRing = 2, kScalable = 3, kCounting = 4 };

// State of a file that is written in place (MappedFilter): one that is being written is not a saved
// filter.
enum class SavedState : std::uint32_t { kWhole = 0, kBeingWritten = 1 };

// Offsets in the saved form of a single filter; the lines lie at a multiple of their size.
inline constexpr std::size_t kSavedStateAt = 20;
inline constexpr std::size_t kSavedInsertionsAt = 112;
inline constexpr std::size_t kSavedSetBitsAt = 120;
inline constexpr std::size_t kSavedLinesAt = 128;

// Maximum in a saved filter.
inline constexpr std::uint32_t kSavedGenerationsMax = 1024;

struct SavedGeneration {
  FilterParameters parameters;
  std::uint64_t insertions = 0;
  std::uint64_t set_bits = 0;
  std::string_view lines;  // decoded only: borrowed from the bytes
};

// How a scalable filter grows (ScalableOptions).
struct SavedGrowth {
  std::uint64_t capacity = 0;
  double fpr = 0;
  double growth = 0;
  double tightening = 0;
};

struct SavedFilter {
  SavedKind kind = SavedKind::kSingle;
  Seed identity_seed;
  std::uint64_t insertions = 0;  // in a counting filter: keys that are in it
  std::uint64_t refreshes = 0;   // in a counting filter: overflows
  std::uint64_t rotations = 0;
  std::uint64_t age_ns = 0;  // age of the current generation
  std::vector<SavedGeneration> generations;
  std::vector<double> positions;  // empty: saved by version 1, or no ring
  SavedGrowth growth;             // in a scalable filter; its content is not checked
};

// `bits` are those of the generations, in their order.
std::string encode(const SavedFilter& saved, const std::vector<const GenerationBits*>& bits);
// The same for lines that are elsewhere: read(i, words) copies line i, eight words. REQUIRES: one
// for each generation, which knows as many lines as the kind has for its parameters.
using ReadLine = std::function<void(std::uint64_t i, std::uint64_t* words)>;
std::string encode(const SavedFilter& saved, std::span<const ReadLine> reads);

// All that comes before the lines.
std::string encode_head(const SavedFilter& saved);
// Bytes of a saved single filter, and the fewest that any has.
std::uint64_t saved_size(const FilterParameters& parameters);
std::uint64_t saved_size_min();

// The kind that the header states; nothing else is checked. Errors: a wrong magic, an unknown kind.
Result<SavedKind> saved_kind(std::string_view bytes);

struct DecodeLimits {
  SavedKind kind = SavedKind::kSingle;
  std::uint32_t generations_min = 1;
  std::uint32_t generations_max = 1;
  std::uint64_t bits_max = kBitsMax;
  bool whole = true;           // false: nothing behind the headers is read, nor the checksum
  bool may_be_marked = false;  // as being written
};
// Errors: too short or long, no such magic, another version or kind, a checksum that does not
// match, positions that are not shares. Also parameters that checked() refuses or that are not as
// it rounds them, impossible counts, a size above the limit. `bytes` must outlive the result.
Result<SavedFilter> decode(std::string_view bytes, const DecodeLimits& limits);

// The data before the lines, and the sizes that follow from it.
struct SavedHead {
  SavedFilter saved;  // its generations without their lines
  std::uint32_t version = 0;
  std::uint64_t lines_at = 0;
  std::uint64_t size = 0;  // the whole size
};
// Reads no more than that of `bytes`. Errors: those of decode() that can be known.
Result<SavedHead> decode_head(std::string_view bytes, const DecodeLimits& limits);
// The bytes of a saved form of any kind, by how it begins: by kSavedHeadMax bytes of it, or all
// where there are fewer. Errors: as decode_head().
inline constexpr std::size_t kSavedHeadMax = 64 + 64 * std::size_t{kSavedGenerationsMax};
Result<std::uint64_t> stated_size(std::string_view bytes);

// Puts a decoded generation's lines into empty bits of the same parameters. Errors: a bit beyond
// the filter's size, a count of set bits that differs from the stated one.
Result<void> restore(const SavedGeneration& saved, GenerationBits& bits);

// Returns the errors that restore() would find, without bits to put the lines into.
Result<void> verify_lines(const SavedGeneration& saved);

// Line i of a decoded generation. REQUIRES: there is one.
std::array<std::uint64_t, kLineWords> saved_line(const SavedGeneration& saved, std::uint64_t i);

// A reason why a saved filter is refused, in the words of all of them.
std::unexpected<Error> refuse_saved(const std::string& what);

// The checksum of bytes that come in pieces.
class SavedChecksum {
 public:
  SavedChecksum();
  SavedChecksum(const SavedChecksum&) = delete;
  SavedChecksum& operator=(const SavedChecksum&) = delete;
  ~SavedChecksum();
  void add(std::string_view bytes);
  // True if it is what eight bytes of a saved form state.
  bool is(std::string_view stated) const;

 private:
  void* state_;  // state of XXH3, 64-byte aligned
};

// Returns the value that the last eight bytes of `bytes` must have. REQUIRES: at least eight bytes.
std::uint64_t saved_checksum(std::string_view bytes);

}  // namespace encore::filter

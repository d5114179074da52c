// The binary formats: records of fixed size. For the readers in this folder.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "sim/trace/input.h"
#include "sim/trace/trace_reader.h"

namespace encore::sim {

// encore-sim's own: kEncoreMagic, then records of 32 bytes, little-endian: id (8), size (8),
// time_ns (8), ttl in seconds (4; all ones: none), zero (4).
inline constexpr std::string_view kEncoreMagic = "ENCTRC01";
inline constexpr std::size_t kEncoreRecord = 32;

// libCacheSim's lcs begins with this number and has 8 KiB of header.
inline constexpr std::uint64_t kLcsMagic = 0x123456789abcdef0U;
inline constexpr std::size_t kLcsHeader = 8192;

inline std::uint64_t load_little(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i != 0; --i) {
    value = value << 8U | static_cast<std::uint8_t>(bytes[at + i - 1]);
  }
  return value;
}
inline std::uint64_t load_big(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value = value << 8U | static_cast<std::uint8_t>(bytes[at + i]);
  }
  return value;
}

// The identity hash of an object that is known by a number: that of its eight bytes.
filter::Hash128 hash_of_id(std::uint64_t id, const filter::Seed& seed);

// Reads the header, where the format has one. Errors: a header that is none, an unknown version.
Result<std::unique_ptr<TraceReader>> make_record_reader(Input input, TraceFormat format,
                                                        const TraceOptions& options);
Result<std::unique_ptr<TraceReader>> make_line_reader(Input input, TraceFormat format,
                                                      const TraceOptions& options);

}  // namespace encore::sim

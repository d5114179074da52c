// The binary formats: records of fixed size. For the readers in this folder.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
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

// Records of vSCSI traces, little-endian, each with its version in the upper byte of a field.
// Version 1 has 32 bytes: serial (4), length in bytes (4), segments (4), command (2), version (2),
// sector of 512 bytes (8), time in microseconds (8). Version 2 has 40: command (2), version (2),
// serial (4), length (4), segments (4), sector (8), time (8), response time (8).
struct VscsiLayout {
  std::size_t record = 0;
  std::size_t version_at = 0;
  std::size_t length_at = 0;
  std::size_t sector_at = 0;
  std::size_t time_at = 0;
};
inline constexpr VscsiLayout kVscsi1{32, 14, 4, 16, 24};
inline constexpr VscsiLayout kVscsi2{40, 2, 8, 16, 24};
// The version of the first records, which all have the same; 0: none.
int vscsi_version(std::string_view bytes);

// Numbers of four or eight bytes. REQUIRES: `size` is one of these, and they are there.
inline std::uint64_t load_native(std::string_view bytes, std::size_t at, std::size_t size) {
  if (size == sizeof(std::uint32_t)) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
inline std::uint64_t load_swapped(std::string_view bytes, std::size_t at, std::size_t size) {
  return std::byteswap(load_native(bytes, at, size)) >> (64 - 8 * size);
}
inline std::uint64_t load_little(std::string_view bytes, std::size_t at, std::size_t size) {
  return std::endian::native == std::endian::little ? load_native(bytes, at, size)
                                                    : load_swapped(bytes, at, size);
}
inline std::uint64_t load_big(std::string_view bytes, std::size_t at, std::size_t size) {
  return std::endian::native == std::endian::big ? load_native(bytes, at, size)
                                                 : load_swapped(bytes, at, size);
}

// The identity hash of an object that is known by a number: that of its eight bytes.
filter::Hash128 hash_of_id(std::uint64_t id, const filter::Seed& seed);

// Reads the header, where the format has one. Errors: a header that is none, an unknown version.
Result<std::unique_ptr<TraceReader>> make_record_reader(Input input, TraceFormat format,
                                                        const TraceOptions& options);
Result<std::unique_ptr<TraceReader>> make_vscsi_reader(Input input, const TraceOptions& options);
Result<std::unique_ptr<TraceReader>> make_line_reader(Input input, TraceFormat format,
                                                      const TraceOptions& options);

}  // namespace encore::sim

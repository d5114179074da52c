// Byte sizes and durations as people write them. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"

namespace encore {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;
inline constexpr std::uint64_t kTiB = 1024 * kGiB;

// Reads "4096", "64KiB", "1.5GiB", "10MB" (1000-based: kB MB GB TB; 1024-based: KiB MiB GiB TiB;
// B for bytes). Units are matched without regard to case except that a bare K, M, G or T is
// refused as ambiguous. Errors: not a number, unknown unit, negative, more than 2^63 - 1 bytes.
Result<std::uint64_t> parse_bytes(std::string_view text);

// Writes with the largest 1024-based unit that keeps at most one decimal: "1.5GiB", "64KiB", "17B".
std::string format_bytes(std::uint64_t bytes);

// Reads "0s", "250ms", "1.5s", "10m", "2h", "7d", "30us". A bare number other than 0 is refused:
// it has no unit. Errors: not a number, unknown unit, negative, more than 292 years.
Result<Nanoseconds> parse_duration(std::string_view text);

// Writes the largest unit in which the duration is a whole number: "90s", "250ms", "2h".
std::string format_duration(Nanoseconds duration);

}  // namespace encore

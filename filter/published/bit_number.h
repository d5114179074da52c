// The bits of a filter as one big number, bit i worth 2^i, as texts. Pure functions, thread-safe.
// `raw` is as of BloomFilter::raw_bits: bit i in byte i / 8, worth 2^(i mod 8).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace encore::filter {

// "0x80a1L": lower-case digits without leading zeros, but at least so many of them; "0x0L" for no
// bits. It is what Python 2 printed of a long integer, and what the published form looks like.
std::string hex_number(std::string_view raw, std::size_t digits_min = 1);
// The same, behind what is there.
void append_hex_number(std::string& out, std::string_view raw, std::size_t digits_min = 1);
// In decimal digits, without leading zeros. Takes time by the square of the size: 30,000 bits take
// a millisecond. Errors: more than kDecimalBitsMax bits.
inline constexpr std::uint64_t kDecimalBitsMax = std::uint64_t{1} << 20U;
Result<std::string> decimal_number(std::string_view raw);

// Reads what hex_number() writes into ceil(bits / 8) bytes; digits of either case, with or without
// the L. Errors: no such number, a bit beyond `bits`. Allocates for `bits`, whatever the text:
// the caller decides how many those may be.
Result<std::string> read_hex_number(std::string_view text, std::uint64_t bits);

}  // namespace encore::filter

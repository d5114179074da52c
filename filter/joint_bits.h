// The false-positive rate that generations have by their bits, all together. Pure functions;
// thread-compatible as the bits are.
//
// The generations of a ring are not independent: a key that was refreshed sets the same bits in two
// of them, and a key that is inserted only where no other generation has it avoids theirs. So a
// probe is answered by all generations of a set T together with probability
//
//   P_T = o_T^k                 classic: o_T the share of positions that are set in all of T (AND)
//   P_T = product of o_T,s      partitioned: o_T in each slice
//   P_T = mean of o_T,l^k       blocked: o_T in each line
//   P_T = mean of product o     split: o_T in each of the eight words of each line
//
// and by some generation with p = sum over the sets T of -(-1)^|T| P_T; for the pair
// a^k + b^k - o^k.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "filter/generation_bits.h"

namespace encore::filter {

// More generations are not taken together: their sets are 2^G. Generations further apart than this
// count as independent, which is an upper bound if keys are refreshed.
inline constexpr std::uint32_t kJointMax = 8;

using Generations = std::span<const GenerationBits* const>;

// p of these generations. Reads at most some `lines_max` lines of each, evenly spread; a single
// classic one costs nothing. REQUIRES: one make (layout, size, hash and seed), 1 to kJointMax.
double fpr_from_bits(Generations generations, std::uint64_t lines_max = UINT64_MAX);

// The share of positions that are set in all generations of T, for each set T: bit g of the index
// is generations[g], and the empty set has 1. REQUIRES and reads: as above.
std::vector<double> shares_set_in_all(Generations generations, std::uint64_t lines_max);

}  // namespace encore::filter

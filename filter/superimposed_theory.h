// Theory of superimposed codes (Mooers 1947, Roberts 1979), for comparison with Bloom filters: each
// key sets k *different* positions of m, drawn without replacement, where a Bloom filter's k
// positions may coincide. Pure functions, thread-safe.
//
// A key never inserted tests positive if the codes of n keys cover its k positions. The number of
// covered ones is a Markov chain: a code of k positions hits h of the u that are open with the
// hypergeometric probability C(u, h) C(m - u, k - h) / C(m, k). Its n-th power has positive terms
// only; the sum over j of (-1)^j C(k, j) (C(m - j, k) / C(m, k))^n is the same and cancels.
#pragma once

#include <cstdint>

namespace encore::filter {

inline constexpr std::uint32_t kCodeWeightMax = 128;

struct CodeShape {
  std::uint64_t bits = 0;    // m
  std::uint32_t weight = 0;  // k, the positions of a key: 1 to kCodeWeightMax, and at most m
};

// The probability that a key never inserted tests positive after `keys` distinct ones, exactly.
double superimposed_fpr(const CodeShape& shape, std::uint64_t keys);
// The expected number of set bits: m (1 - (1 - k/m)^n).
double superimposed_set_bits(const CodeShape& shape, double keys);

// The bits of a bit vector, one hash per key, that has this rate: 1 / (1 - (1 - p)^(1/n)).
// REQUIRES: 0 < fpr < 1, keys > 0.
double bit_vector_size(double keys, double fpr);

}  // namespace encore::filter

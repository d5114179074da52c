// Sums over sets of generations: a vector of 2^n numbers, bit g of the index for generation g.
#pragma once

#include <bit>
#include <cstddef>
#include <vector>

namespace encore::filter {

// v[S] becomes the sum of v over the subsets of S.
inline void sum_over_subsets(std::vector<double>& v) {
  for (std::size_t bit = 1; bit < v.size(); bit *= 2) {
    for (std::size_t set = 0; set < v.size(); ++set) {
      if ((set & bit) != 0) v[set] += v[set ^ bit];
    }
  }
}

// The reverse of it.
inline void differences_over_subsets(std::vector<double>& v) {
  for (std::size_t bit = 1; bit < v.size(); bit *= 2) {
    for (std::size_t set = 0; set < v.size(); ++set) {
      if ((set & bit) != 0) v[set] -= v[set ^ bit];
    }
  }
}

// v[S] becomes the sum of v over the sets that contain S.
inline void sum_over_supersets(std::vector<double>& v) {
  for (std::size_t bit = 1; bit < v.size(); bit *= 2) {
    for (std::size_t set = 0; set < v.size(); ++set) {
      if ((set & bit) == 0) v[set] += v[set | bit];
    }
  }
}

inline bool odd_size(std::size_t set) { return std::popcount(set) % 2 != 0; }

// From P(all of T) for each set T to P(some of U) for each set U: inclusion and exclusion.
inline void all_to_some(std::vector<double>& v) {
  for (std::size_t set = 0; set < v.size(); ++set) {
    v[set] = set == 0 ? 0 : odd_size(set) ? v[set] : -v[set];
  }
  sum_over_subsets(v);
}

}  // namespace encore::filter

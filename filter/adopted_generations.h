// AdoptedGenerations: the adopted memories that a ring still asks, and how old they have become in
// it. A value; thread-compatible, confined to its ring.
//
// A generation of another ring joins as an older one. It was number i there, of G', and is number
// max(1, i) here, of G. It leaves after as many rotations of this ring as an older generation of
// that number has left here, and never after more than it had left there,
//
//   min(G - max(1, i), G' - i).
//
// Later ones never outlive earlier ones, so what is left of a memory are its newest generations.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "filter/adopted_memory.h"

namespace encore::filter {

// Memories in one ring. Each costs a read of up to kGenerationsMax lines for each new key.
inline constexpr std::uint32_t kAdoptedMax = 4;

struct AdoptedStatistics {
  std::uint32_t memories = 0;
  std::uint32_t generations = 0;
  std::uint64_t answers = 0;  // decisions in which only an adopted generation knew the key
  double fpr_theory = 0;      // rate of the adopted ones alone
  double fpr_bits = 0;
};

class AdoptedGenerations {
 public:
  bool empty() const { return memories_.empty(); }
  // In a ring of so many generations; returns how many of the memory's were taken. Errors: there
  // are kAdoptedMax memories already.
  Result<std::uint32_t> add(std::shared_ptr<const AdoptedMemory> memory, std::uint32_t ring);
  // The ring of so many generations has rotated.
  void rotate(std::uint32_t ring);
  bool test(const HashedKey& key) const;
  // p of these and of what has p without them.
  double with_theory(double fpr) const;
  double with_bits(double fpr) const;
  // `answers` is the ring's to count.
  AdoptedStatistics statistics() const;

 private:
  struct Adopted {
    std::shared_ptr<const AdoptedMemory> memory;
    std::uint32_t rotations = 0;    // rotations of the ring, since it came
    std::uint32_t generations = 0;  // that have not left
  };
  std::vector<Adopted> memories_;
};

}  // namespace encore::filter

#include "filter/adopted_generations.h"

#include <algorithm>
#include <string>
#include <utility>

namespace encore::filter {
namespace {

// Rotations after which generation i of `theirs` has left a ring of `ring`.
std::uint32_t lifetime(std::uint32_t i, std::uint32_t theirs, std::uint32_t ring) {
  const std::uint32_t place = std::max(1U, i);
  return place >= ring ? 0 : std::min(ring - place, theirs - i);
}

std::uint32_t left_of(const AdoptedMemory& memory, std::uint32_t ring, std::uint32_t rotations) {
  std::uint32_t left = 0;
  while (left < memory.generations() && lifetime(left, memory.generations(), ring) > rotations) {
    ++left;
  }
  return left;
}

}  // namespace

Result<std::uint32_t> AdoptedGenerations::add(std::shared_ptr<const AdoptedMemory> memory,
                                              std::uint32_t ring) {
  if (memories_.size() == kAdoptedMax) {
    return fail(std::to_string(memories_.size()) +
                " adopted memories are remembered already, no more are taken");
  }
  const std::uint32_t taken = left_of(*memory, ring, 0);
  memories_.push_back({.memory = std::move(memory), .generations = taken});
  return taken;
}

void AdoptedGenerations::rotate(std::uint32_t ring) {
  for (Adopted& adopted : memories_) {
    adopted.generations = left_of(*adopted.memory, ring, ++adopted.rotations);
  }
  std::erase_if(memories_, [](const Adopted& adopted) { return adopted.generations == 0; });
}

bool AdoptedGenerations::test(const HashedKey& key) const {
  return std::ranges::any_of(memories_, [&](const Adopted& adopted) {
    return adopted.memory->test(key, adopted.generations);
  });
}

double AdoptedGenerations::with_theory(double fpr) const {
  for (const Adopted& adopted : memories_) {
    fpr += (1 - fpr) * adopted.memory->fpr(adopted.generations).theory;
  }
  return fpr;
}

double AdoptedGenerations::with_bits(double fpr) const {
  for (const Adopted& adopted : memories_) {
    fpr += (1 - fpr) * adopted.memory->fpr(adopted.generations).bits;
  }
  return fpr;
}

AdoptedStatistics AdoptedGenerations::statistics() const {
  AdoptedStatistics statistics{.memories = static_cast<std::uint32_t>(memories_.size()),
                               .fpr_theory = with_theory(0),
                               .fpr_bits = with_bits(0)};
  for (const Adopted& adopted : memories_) {
    statistics.generations += adopted.generations;
  }
  return statistics;
}

}  // namespace encore::filter

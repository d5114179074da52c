// CodeExperiment: a Bloom filter against a superimposed code. Both are filled with the same number
// of keys and tested with others, again and again with another seed. Deterministic; thread-safe.
#pragma once

#include <cstdint>

#include "base/cli/monitor.h"
#include "base/error.h"

namespace encore::sim {

enum class CodeKind : std::uint8_t {
  kBloom,         // k positions, which may coincide
  kSuperimposed,  // k different ones
};

struct CodeExperiment {
  CodeKind kind = CodeKind::kBloom;
  std::uint64_t bits = 0;
  std::uint32_t hashes = 0;  // up to kCodeWeightMax; superimposed: up to `bits`
  std::uint64_t keys = 0;    // inserted
  std::uint64_t tests = 0;   // keys never inserted
  std::uint64_t seed = 0;
};

struct CodeCount {
  std::uint64_t set_bits = 0;
  std::uint64_t false_positives = 0;
};

// One filter of classic layout, by the family `chained`, whose indices are independent. Without
// replacement: an index that the key has already is drawn again. `monitor` counts keys and tests;
// if it stops the run, the count is incomplete. Errors: those of the filter.
Result<CodeCount> run_code(const CodeExperiment& experiment, Monitor& monitor);

}  // namespace encore::sim

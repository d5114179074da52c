// A sweep: traces, and options of `encore-sim replay` with one value or several. Its file is TOML:
//
//   traces = ["web07.csv.zst"]
//   [fixed]
//   warmup = "10%"
//   [sweep]
//   eviction = ["lru", "sieve"]
//   cache-size = { from = "0.1%", to = "10%", points = 5 }     # equally far apart by logarithm
//   seed = { from = 1, to = 3 }                                # by 1, or by `step`
//
// Options that it does not have keep their defaults; that of admission is "always" here. Values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace encore::sim {

// One option with the values that are tried. A flag that is set has the value "true"; one that is
// not is left out.
struct SweptOption {
  std::string name;  // without dashes: "cache-size"
  std::vector<std::string> values;
  bool is_flag = false;
  std::string place;                     // "sweep.toml:3:8"
  std::vector<std::string> places = {};  // of each value of a list; else empty
};

struct SweptTrace {
  std::string name;  // as the file has it
  std::string path;  // as it is opened
};

struct Sweep {
  std::vector<SweptTrace> traces;
  std::vector<SweptOption> options;  // in the order of the file, the fixed ones first
};

inline constexpr std::size_t kSweepRunsMax = 1'000'000;

// Errors: no TOML, an unknown table, a value of another kind, an option that a sweep sets itself,
// more than kSweepRunsMax combinations. The message begins with the place.
Result<Sweep> parse_sweep(std::string_view text, std::string_view name);
// Reads the file. Traces with relative paths are taken from its directory.
Result<Sweep> read_sweep(const std::string& path);

}  // namespace encore::sim

// RequestGenerator: synthetic request streams in constant memory, the same for a seed everywhere.
// Deterministic; thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace encore::sim {

struct GeneratedRequest {
  std::uint64_t id = 0;
  std::int64_t time_ns = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t ttl_seconds = 0xffffffffU;  // kNoTtl
  std::uint64_t number = 0;                 // of the whole stream, from 1, whatever the sample
};

//  enumerator  name       what
#define ENCORE_PATTERNS(X)                                                                      \
  X(kZipf, "zipf", "independent draws, popularity 1/rank^alpha")                                \
  X(kAkamai, "akamai",                                                                          \
    "an exact share of one-hit objects, the others requested at least twice, by Zipf")          \
  X(kShift, "shift", "Zipf with ranks that move to other objects every --shift-every requests") \
  X(kWaves, "waves", "Zipf with new objects every --shift-every requests")                      \
  X(kLoop, "loop", "all objects in order, repeatedly")                                          \
  X(kScan, "scan", "a new object for every request")                                            \
  X(kTwice, "twice", "each object twice, with --objects new ones between")                      \
  X(kMixture, "mixture", "a mixture of the others: --mix zipf=0.7,scan=0.3")

enum class Pattern : std::uint8_t {
#define ENCORE_ENUMERATOR(id, name, what) id,
  ENCORE_PATTERNS(ENCORE_ENUMERATOR)
#undef ENCORE_ENUMERATOR
};
// Errors: an unknown name.
Result<Pattern> parse_pattern(std::string_view name);

// A number for each object, the same each time it is asked for.
struct Distribution {
  enum class Kind : std::uint8_t { kConstant, kLognormal, kPareto, kEmpirical };
  Kind kind = Kind::kConstant;
  double location = 0;         // constant: the value; lognormal: the median; pareto: the minimum
  double shape = 1;            // lognormal: sigma; pareto: alpha
  double maximum = 1e12;       // values above are cut
  std::vector<double> values;  // empirical: one of them, all as likely
};
// "1024" (also "16KiB"), "lognormal:MEDIAN:SIGMA[:MAX]", "pareto:MIN:ALPHA[:MAX]". Errors: anything
// else, parameters that are none.
Result<Distribution> parse_distribution(std::string_view text);

struct MixturePart {
  Pattern pattern = Pattern::kZipf;
  double share = 1;
};

struct GeneratorOptions {
  Pattern pattern = Pattern::kZipf;
  std::uint64_t seed = 1;
  std::uint64_t requests = 1000000;
  std::uint64_t objects = 0;  // 0: a tenth of the requests; akamai: four tenths
  double alpha = 1.0;
  double one_hit_share = 0.75;  // akamai: of the objects
  std::uint64_t shift_every = 100000;
  double shift_share = 0.1;  // share of the ranks that move each time
  std::vector<MixturePart> mixture;
  Distribution size{.location = 1024, .values = {}};
  Distribution ttl{.location = 0, .values = {}};  // 0: none
  double requests_per_second = 1000;
  bool poisson = true;  // exponential times between requests; else all the same
  // zipf: only the requests for a sample of this share of the objects (sampled_zipf.h); 1: all.
  double sample = 1;
  std::uint64_t sample_seed = 1;
};

class RequestGenerator {
 public:
  virtual ~RequestGenerator() = default;
  // False at the end.
  virtual bool next(GeneratedRequest& request) = 0;
};

// Errors: no requests, a sample of another pattern or of too many objects, alpha negative, shares
// outside 0..1, more objects than akamai's requests can ask for, a mixture without parts or with a
// mixture in it. The message shows the value.
Result<std::unique_ptr<RequestGenerator>> make_generator(const GeneratorOptions& options);

}  // namespace encore::sim

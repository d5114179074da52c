// What follows from a config: the filter's size and figures, effective limits, the report of
// --check-config. Pure functions, thread-safe. REQUIRES everywhere: a Config from load_config().
#pragma once

#include <cstdint>
#include <string>

#include "cache/options.h"
#include "config/config.h"
#include "filter/parameters.h"
#include "filter/theory.h"

namespace encore::config {

// The rotating pair of the cache. `shard` are the parameters of one generation of one shard; its
// seed is that of the config, or zero where none is configured: the server then sets one.
struct FilterPlan {
  filter::FilterParameters shard;
  std::uint32_t shards = 0;
  std::uint64_t bits = 0;          // of one generation, over all shards
  std::uint64_t capacity = 0;      // insertions a generation, over all shards
  std::uint64_t memory_bytes = 0;  // both generations of all shards
  filter::CycleFpr fpr;            // over a cycle, by theory
};

// Errors: what filter::checked() refuses; load_config() has asked already.
Result<FilterPlan> derive_filter(const Config& config);

// cache.max_object, but never more than an eighth of the memory.
std::uint64_t effective_max_object(const Cache& cache) noexcept;

// The kernel that the config describes. Both seeds are the configured one, or zero where none is:
// the server then sets its own. Errors: as derive_filter().
Result<cache::KernelOptions> kernel_options(const Config& config);

// workers.count, or `cores` where it is 0.
std::uint32_t effective_workers(const Workers& workers, std::uint32_t cores) noexcept;

// The text of --check-config: what the operator gets, for people.
std::string check_report(const Config& config, std::uint32_t cores);

}  // namespace encore::config

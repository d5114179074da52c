// Values derived from a config: the filter's size and figures, effective limits, the report of
// --check-config. Pure functions, thread-safe. REQUIRES everywhere: a Config from load_config().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/disk_layout.h"
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
  std::uint64_t bits = 0;          // bits of one generation, over all shards
  std::uint64_t capacity = 0;      // insertions a generation, over all shards
  std::uint64_t memory_bytes = 0;  // both generations of all shards
  filter::CycleFpr fpr;            // over a cycle, by theory
};

// The rate of probation's pair: .1 % would bring a tenth of a point more of hits, 1 % takes as much
// away.
inline constexpr double kProbationFpr = 0.003;
// Nothing is on probation for longer: where little comes an object would wait for hours, and what
// is asked for again then would be unknown still.
inline constexpr Nanoseconds kProbationWaitMax = std::chrono::hours(1);

// Insertions that an admission policy should remember a key for. For policies that remember keys it
// follows from the objects that the cache can hold (estimate_objects()), times the requests that
// are insertions. With fewer than `least` a key expires while objects that came with it are still
// cached. With more than `most` many objects are written to disk that are requested too seldom.
struct Window {
  std::uint64_t derived = 0;  // meaning of an admission.capacity of 0, without bits
  bool follows = false;       // from the objects held; else it is fixed
  std::uint64_t least = 0;
  std::uint64_t most = 0;  // without disks there is no such bound
  std::uint64_t recommended = 0;
};
Window window_of(const Config& config) noexcept;

// Errors: what filter::checked() refuses; load_config() has asked already.
Result<FilterPlan> derive_filter(const Config& config);

// True if [filters] publishes this.
bool publishes(const Filters& filters, std::string_view what) noexcept;
// The filter of an hour of changes: classic, for scripts that read it, and without a seed, for it
// is published. Errors: those of filter::checked(); load_config() has asked already.
Result<filter::FilterParameters> derive_changed_filter(const Filters& filters);
// Likewise of what is resident; `capacity` is that of both of its filters.
Result<filter::FilterParameters> derive_resident_filter(const Config& config);
// Responses that it is made for where filters.resident_capacity is 0: one for each 16 KiB of the
// cache; and the most that a filter of this hash and rate can be made for.
std::uint64_t resident_capacity_of(const Cache& cache) noexcept;
std::uint64_t resident_capacity_max(const Filters& filters);
// filters.keep in hours, rounded up.
std::uint32_t hours_kept(const Filters& filters) noexcept;

// How a disk is divided when it is made; one that is there keeps the size of its segments. Errors:
// as cache::lay_out_disk(); load_config() has asked already.
Result<cache::DiskLayout> derive_disk(const Disk& disk);
// disk.segment, or cache::default_segment_bytes() where it is 0.
std::uint64_t segment_bytes_of(const Disk& disk) noexcept;

// Objects of the mean size that the cache can hold, and the size of their index: all that fit on
// its disks, those of them that fit into the index, and those in memory next to it.
struct ObjectEstimate {
  std::uint64_t on_disk = 0;
  std::uint64_t index_bytes = 0;      // index of all that fit
  std::uint64_t index_bytes_max = 0;  // the index's share of the memory
  std::uint64_t indexed = 0;
  std::uint64_t in_memory = 0;
  std::uint64_t held() const { return indexed + in_memory; }
};
ObjectEstimate estimate_objects(const Config& config) noexcept;

// The longest body that a disk takes for its segments: a longer one is divided into parts of nearly
// 4 MiB, and a segment that is smaller than a part has to take the body whole. No bound: the
// maximum.
std::uint64_t segment_bound(const Disk& disk) noexcept;

// The largest object that is stored: cache.max_object, but never more than an eighth of the memory,
// or of the disks where there are any, within the smallest segment_bound(); what is in memory is
// never more than an eighth of that.
std::uint64_t effective_max_object(const Config& config) noexcept;
// Returns the largest size that may be stored in memory, under the rule with the highest limit.
std::uint64_t max_object_in_memory(const Config& config) noexcept;
// As effective_max_object(), of another max_object than that of [cache].
std::uint64_t bounded_max_object(const Config& config, std::uint64_t bytes) noexcept;

// The kernel that the config describes. Both seeds are the configured one, or zero where none is:
// the server then sets its own. The rules of the disks are in it, the disks are not: they are as
// they are found. Errors: as derive_filter().
Result<cache::KernelOptions> kernel_options(const Config& config);

// The admin listeners, in the order of the config. Empty: there is none.
std::vector<Endpoint> admin_endpoints(const Admin& admin);
// The same as text, "127.0.0.1:3129, unix:/run/encore/admin.sock"; "none" where there is none.
std::string admin_text(const Admin& admin);
// The file of the admin socket in a state directory.
std::string admin_socket_in(const std::string& directory);
// True if only this machine reaches the listener: a loopback address, or a Unix socket.
bool is_local(const Endpoint& endpoint) noexcept;
// Returns warnings about the admin listeners, a sentence each; for the log, the live page and
// --check-config.
std::vector<std::string> admin_warnings(const Admin& admin);
// The kernel that a policy of [shadow] is simulated with, were all keys in the sample: one shard,
// and of an eighth of the cache at most for one object. Errors: as derive_filter().
Result<cache::KernelOptions> shadow_kernel(const Config& config, const ShadowPolicy& policy);
// About what all policies of [shadow] take of memory, full of the smallest objects.
std::uint64_t shadow_bytes(const Config& config);

// workers.count, or `cores` where it is 0.
std::uint32_t effective_workers(const Workers& workers, std::uint32_t cores) noexcept;

// The text of --check-config: what the operator gets, for people.
std::string check_report(const Config& config, std::uint32_t cores);

// True if another client, or one of another listener, may match another of these rules for the same
// URL, and so get another response. Not if all rules that it may match respond themselves, or cache
// nothing.
bool depend_on_who_asks(std::span<const Rule> rules);

}  // namespace encore::config

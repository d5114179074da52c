// ShadowCache: estimates the hits of a cache with another policy on the same requests. It is a
// separate kernel without bytes, which receives the requests whose keys are in a sample (SHARDS;
// see spatial_sample.h), as the simulator's replay feeds one. A request for a fresh entry is a hit.
// A stale entry is validated, found unchanged and made fresh, and is not a hit. Any other object is
// stored, if the policy says so. Purges and invalidations are unknown here. Thread-compatible,
// deterministic.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "base/time.h"
#include "cache/kernel.h"
#include "cache/options.h"
#include "cache/spatial_sample.h"
#include "cache/types.h"

namespace encore::cache {

// A request whose answer was stored or may be.
struct ShadowRequest {
  filter::Hash128 key{};
  std::uint64_t variant = 0;
  std::uint64_t sent_bytes = 0;    // bytes of the body, as the client gets it
  std::uint64_t object_bytes = 0;  // size of the whole body
  std::uint64_t charge_bytes = 0;  // charge of the object, without the kernel's addition for its
                                   // entry
  std::uint64_t rule = 0;          // AdmissionRule::encoded()
  MonotonicTime now{};
  std::uint32_t fresh_seconds = 0;  // as if it came from its origin now
};

// Counts of a sample, or of all requests.
struct ShadowCounts {
  std::uint64_t requests = 0;
  std::uint64_t hits = 0;
  std::uint64_t validations = 0;
  std::uint64_t bytes_requested = 0;
  std::uint64_t bytes_hit = 0;
  std::uint64_t objects_written = 0;
  std::uint64_t bytes_written = 0;  // by their charge

  ShadowCounts operator-(const ShadowCounts& other) const;
  ShadowCounts& operator+=(const ShadowCounts& other);
};

// A share with its bounds.
struct ShadowShare {
  double value = 0;
  double low = 0;
  double high = 0;
};

class ShadowCache {
 public:
  // `whole` is the kernel for all keys; what is made is that for the sample. Errors: as
  // Kernel::create().
  static Result<std::unique_ptr<ShadowCache>> create(const KernelOptions& whole,
                                                     const SpatialSample& sample,
                                                     MonotonicTime now);

  // REQUIRES: the key is in the sample.
  void feed(const ShadowRequest& request);

  // Counts of the sample.
  const ShadowCounts& counts() const { return counts_; }
  // Returns the counts of all requests, estimated from the sample if there is one. `all` are the
  // counts of the requests that the sample was drawn from. Their requests and bytes are known
  // exactly, so the difference to the sample's share counts as hits (SHARDS-adj).
  ShadowCounts estimate(const ShadowCounts& all) const;
  // Shares of requests that hit, and of their bytes. The bounds are 95 % of Student's t over the
  // sample's eight disjoint parts (the method of random groups; Wolter, "Introduction to Variance
  // Estimation", 2007, 2.2), with the correction for a sample without replacement. The amount by
  // which SHARDS-adj has moved the value is added on that side. They do not include the different
  // behaviour of a cache with fewer objects.
  ShadowShare object_hit_ratio(const ShadowCounts& all) const;
  ShadowShare byte_hit_ratio(const ShadowCounts& all) const;

  const KernelOptions& options() const { return whole_; }
  std::uint64_t memory_bytes() const;
  std::uint64_t objects() const { return kernel_->statistics().objects; }

 private:
  struct Part {
    std::uint64_t requests_missed = 0;
    std::uint64_t bytes_missed = 0;
  };
  ShadowCache(const KernelOptions& whole, const SpatialSample& sample)
      : whole_(whole), sample_(sample) {}
  bool look_up(const Key& key, const ShadowRequest& request);
  void store(const Key& key, const ShadowRequest& request);

  const KernelOptions whole_;
  const SpatialSample sample_;
  std::unique_ptr<Kernel> kernel_;
  MonotonicTime now_{};
  ShadowCounts counts_;
  std::array<Part, SpatialSample::kParts> parts_{};
};

}  // namespace encore::cache

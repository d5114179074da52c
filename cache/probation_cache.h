// ProbationCache: the whole design without bytes: Probation in front of a VisitedLog. The simulator
// replays traces through one, and ProbationSamples run several on samples of the traffic.
// Thread-compatible, deterministic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "cache/disk_copies.h"
#include "cache/probation.h"
#include "cache/visited_log.h"

namespace encore::cache {

struct ProbationCacheSettings {
  std::uint64_t memory_bytes = 0;  // for waiting objects
  std::uint64_t copies_bytes = 0;  // also memory, for copies of objects that are hit on disk again
  std::uint64_t disk_bytes = 0;
  std::uint64_t segment_bytes = 0;  // 0: a thirty-second of the disk
  double move_share = 0.5;
  filter::FilterParameters keys{};  // as Probation::Settings
  ProbationRule rule{};
  bool fill = true;
  Nanoseconds wait_max{0};
};
inline constexpr std::uint64_t kProbationSegments = 32;

struct ProbationRequest {
  filter::Hash128 key{};
  std::uint64_t size_bytes = 0;
  Payload payload = 0;
  MonotonicTime now{};
  MonotonicTime fresh_until = MonotonicTime::max();  // if it is fetched or validated now
};

enum class ProbationPlace : std::uint8_t { kNowhere, kMemory, kDisk };
struct ProbationAnswer {
  ProbationPlace found = ProbationPlace::kNowhere;      // kMemory: it waits, or is copied there
  bool was_stale = false;                               // it was validated and is fresh again
  ProbationVerdict verdict = ProbationVerdict::kWaits;  // verdict if the object was found nowhere
};

struct ProbationCounts {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  std::uint64_t memory_hits = 0;  // stale ones included, here and below
  std::uint64_t memory_hit_bytes = 0;
  std::uint64_t disk_hits = 0;
  std::uint64_t disk_hit_bytes = 0;
  std::uint64_t missed_bytes() const { return bytes - memory_hit_bytes - disk_hit_bytes; }
};

class ProbationCache {
 public:
  // Errors: those of Probation::create().
  static Result<ProbationCache> create(const ProbationCacheSettings& settings, MonotonicTime now);

  ProbationAnswer request(const ProbationRequest& request);
  // Objects that the last request wrote to the disk, moves not included.
  struct Written {
    Payload payload = 0;
    std::uint64_t size_bytes = 0;
  };
  std::span<const Written> written() const { return written_; }

  const ProbationCounts& counts() const { return counts_; }
  const Probation& probation() const { return probation_; }
  const VisitedLog& log() const { return log_; }
  DiskLoad load() const;
  void set_rule(const ProbationRule& rule) { probation_.set_rule(rule); }
  std::uint64_t objects() const { return probation_.queue().objects() + log_.objects(); }
  std::uint64_t memory_bytes() const;

 private:
  // From the second visit on an object of the disk is copied into memory.
  static constexpr std::uint8_t kCopyVisits = 2;

  ProbationCache(Probation probation, const VisitedLog::Settings& log, std::uint64_t copies_bytes)
      : probation_(std::move(probation)), log_(log), copies_(copies_bytes) {}
  bool find(const ProbationRequest& request, ProbationAnswer& answer);
  void write(const LoggedObject& object, WrittenFor why, Payload payload);
  void let_leave(MonotonicTime now);

  Probation probation_;
  VisitedLog log_;
  DiskCopies copies_;
  ProbationCounts counts_;
  std::vector<Written> written_;
};

}  // namespace encore::cache

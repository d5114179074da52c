// RecentRequests: of each outcome the reasons that there were and the latest requests, and the
// hosts and clients that weigh most; bounded, whatever clients ask for. One worker writes, anybody
// reads.
//
// Plain hits are sampled, one in kHitSample on average, at random distances: a hit pays for a
// decrement. The figures of hosts count such a sample kHitSample times.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "proxy/observe/heavy_hitters.h"
#include "proxy/observe/outcome.h"
#include "proxy/observe/recent_hitters.h"

namespace encore::server {

struct RecentRequest {
  WallTime when;
  std::string method;
  std::string url;  // as the client asked, the query left out unless that is configured
  std::string reason;
  int status = 0;
};

// Report of one outcome.
struct OutcomeReport {
  struct Reason {
    std::string name;
    std::uint64_t count = 0;
  };
  std::vector<Reason> reasons;
  std::vector<RecentRequest> latest;  // the latest first
};

// Hosts and clients of the last one to two minutes, by requests and by bytes of bodies.
template <typename Hitters>
struct TopNames {
  Hitters host_requests;
  Hitters host_bytes;
  Hitters client_requests;
  Hitters client_bytes;
};

class RecentRequests {
 public:
  static constexpr std::uint32_t kHitSample = 64;
  static constexpr std::size_t kLatest = 20;     // per outcome, as many as are shown
  static constexpr std::size_t kReasons = 24;    // likewise; further ones count as "other"
  static constexpr std::size_t kUrlBytes = 512;  // longer ones are cut
  static constexpr std::size_t kReasonBytes = 64;

  RecentRequests();

  // True if this plain hit is of the sample. The writer's thread.
  bool is_sampled() noexcept {
    if (--until_sample_ != 0) [[likely]]
      return false;
    draw();
    return true;
  }

  struct Note {
    Outcome outcome = Outcome::kInternal;
    std::string_view reason = {};  // "": the outcome says it all
    std::string_view method = {};
    std::string_view host = {};  // if the target does not name it
    std::string_view target = {};
    std::string_view client = {};  // its address or network; empty: not known
    int status = 0;
    std::uint64_t body_bytes = 0;
    std::uint32_t weight = 1;  // how many requests it stands for
    bool show_query = false;
  };
  void note(const Note& note, WallTime when);

  // Adds what this worker knows of it.
  void add_to(OutcomeReport& report, Outcome outcome) const;
  // Adds the hosts by bytes of bodies and by hits.
  void add_hosts(HeavyHitters& by_bytes, HeavyHitters& by_hits) const;
  // Adds the hosts and clients of the last minutes.
  void add_top(TopNames<HeavyHitters>& sum, WallTime now) const;

 private:
  struct OfOutcome {
    std::vector<OutcomeReport::Reason> reasons;
    std::vector<RecentRequest> latest;  // a ring
    std::size_t next = 0;
  };
  void draw() noexcept;
  void note_names(const Note& note, std::string_view host, WallTime when) ENCORE_REQUIRES(mutex_);

  std::uint32_t until_sample_ = 1;
  std::uint64_t random_;
  mutable Mutex mutex_;
  std::array<OfOutcome, kOutcomeCount> outcomes_ ENCORE_GUARDED_BY(mutex_);
  HeavyHitters bytes_ ENCORE_GUARDED_BY(mutex_);
  HeavyHitters hits_ ENCORE_GUARDED_BY(mutex_);
  TopNames<RecentHitters> top_ ENCORE_GUARDED_BY(mutex_);
};

// Sorts and bounds what several workers have added.
void finish(OutcomeReport& report, std::size_t latest_max);

}  // namespace encore::server

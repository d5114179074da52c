// FleetFilters: the admission filter of this process, for a fleet's thread: what it is, its saved
// form, and the adoption of another node's. docs/decisions/0605.
#pragma once

#include <condition_variable>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/mutex.h"
#include "cache/statistics.h"
#include "config/config.h"
#include "proxy/fleet/presence.h"
#include "proxy/net/loop.h"
#include "proxy/observe/fleet_report.h"
#include "proxy/process/handover.h"

namespace encore::server {

// The filter that nodes of this configuration have, without what it knows. Nothing: none that can
// be adopted, or fleet.adopt is off.
std::optional<fleet::FilterFacts> filter_facts(const config::Config& config);

class FleetFilters {
 public:
  // Both are borrowed. `memory` is called on the loop only.
  FleetFilters(net::Loop& loop, MemoryHandover& memory, const config::Config& config)
      : loop_(loop), memory_(memory), facts_(filter_facts(config)) {}

  // A reload.
  void use(const config::Config& config);
  // Whether a filter is adopted at this start, with such statistics of what was restored.
  FleetFilter::State state_at_start(const cache::AdmissionStatistics& own,
                                    const config::Config& config, bool has_filter) const;

  // Any thread.
  std::optional<fleet::FilterFacts> facts(const cache::AdmissionStatistics& own) const;
  // One thread at a time, which waits until the loop and its jobs have done it, or for stop().
  // fleet::FleetHost has what they return.
  std::shared_ptr<const std::string> save();
  Result<std::uint64_t> adopt(std::string bytes);
  // Any thread.
  void stop();

 private:
  // Shared with the loop, which may have a call longer.
  struct Gate {
    Mutex mutex;
    std::condition_variable_any changed;
    bool is_stopped ENCORE_GUARDED_BY(mutex) = false;
  };
  template <typename T, typename Begin>
  std::optional<T> wait_for(Begin begin);

  net::Loop& loop_;
  MemoryHandover& memory_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::optional<fleet::FilterFacts> facts_;  // guarded by the gate's mutex
};

}  // namespace encore::server

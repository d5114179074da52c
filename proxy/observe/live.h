// Data of the live page in addition to the counters, and the JSON that it requests. Pure. Any
// thread. Why the page polls: docs/decisions/0280.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "proxy/observe/heavy_hitters.h"
#include "proxy/observe/history.h"
#include "proxy/observe/limit_report.h"
#include "proxy/observe/pages.h"
#include "proxy/observe/recent.h"

namespace encore::server {

struct LiveStatus {
  std::string name;  // name of the machine
  bool ready = true;
  bool token_needed = false;  // to purge, by the listener of the request
  struct Reload {
    WallTime when{};
    std::string fault;  // empty: the configuration was taken over
  };
  std::optional<Reload> last_reload;  // nothing: there was none
  std::vector<std::string> warnings;
  std::vector<LimitReport> limits;
  HeavyHitters hosts_by_bytes;
  HeavyHitters hosts_by_hits;
  Nanoseconds rotate_after{};  // 0: by count alone
  std::int64_t now_ms = 0;     // by the history's clock
};

// {"process": ..., "stats": what /api/stats says at the same moment, "history": of the rows that
// ended after since_ms}.
std::string live_json(const LiveStatus& live, const Snapshot& snapshot,
                      const ProcessStatus& process, const History& history, std::int64_t since_ms);

// Report of one outcome: its reasons with their counts, and the latest requests.
std::string outcome_json(Outcome outcome, std::uint64_t requests, const OutcomeReport& report);

}  // namespace encore::server

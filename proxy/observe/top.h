// The JSON of /api/top: rates and latencies of the last seconds, and the hosts and clients of the
// last minutes. Pure. Any thread.
#pragma once

#include <string>

#include "base/time.h"
#include "proxy/observe/live.h"
#include "proxy/observe/pages.h"
#include "proxy/observe/rate_window.h"
#include "proxy/observe/recent.h"
#include "proxy/observe/snapshot.h"

namespace encore::server {

struct TopReport {
  RecentRates rates;
  TopNames<HeavyHitters> names;
  Nanoseconds covered{};  // by the names
};

// At most `count` names of each kind.
std::string top_json(const TopReport& top, const LiveStatus& live, const Snapshot& snapshot,
                     const ProcessStatus& process, std::size_t count);

}  // namespace encore::server

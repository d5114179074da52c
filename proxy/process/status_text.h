// The text of /api/status, which `encore status` prints: what the process serves and holds, what
// was refused, and what to do about what a start has found on disk. Pure.
#pragma once

#include <string>
#include <string_view>

#include "config/config.h"
#include "proxy/observe/live.h"
#include "proxy/observe/pages.h"
#include "proxy/observe/snapshot.h"

namespace encore::server {

inline constexpr std::string_view kStatusApi = "/api/status";

// Lines of a label and what it says.
std::string status_text(const config::Config& config, const LiveStatus& live,
                        const Snapshot& snapshot, const ProcessStatus& process);

// The same as JSON.
std::string status_json(const LiveStatus& live, const Snapshot& snapshot,
                        const ProcessStatus& process);

}  // namespace encore::server

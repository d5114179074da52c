// Counts of servers, listeners, rules and errors, added up for the pages. Any thread.
#pragma once

#include <vector>

#include "proxy/observe/series_report.h"
#include "proxy/observe/server_report.h"
#include "proxy/process/shared.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

// Returns the servers of all origins, in the order of the config.
std::vector<ServerReport> server_reports(const Runtime& runtime);
SeriesReport series_report(const Runtime& runtime, const Shared& shared);

}  // namespace encore::server

// Metrics and JSON of a fleet (fleet_report.h). Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "proxy/observe/fleet_report.h"
#include "proxy/observe/metrics_writer.h"

namespace encore::server {

void write_fleet(MetricsWriter& out, const FleetReport& fleet);

// Warning that another process uses the name of this node.
std::string namesake_text(std::string_view node);

// {"engine": {...}, "purges": {...}, "warnings": [...], "filter": {...}, "nodes": [...]}, as GET
// /fleet returns it.
std::string fleet_json(const FleetReport& fleet);

// "purges are late: 12 s (cannot connect to ...)"; empty: they are not.
std::string lateness(const FleetReport& fleet);

}  // namespace encore::server

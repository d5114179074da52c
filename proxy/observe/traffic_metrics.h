// Writes the metrics of requests: durations, sizes of responses, and outcomes by listener, rule and
// error. Pure, any thread.
#pragma once

#include "proxy/observe/metrics_writer.h"
#include "proxy/observe/snapshot.h"

namespace encore::server {

// Response times and sizes, by class of outcome.
void write_distributions(MetricsWriter& out, const Snapshot& snapshot);
// Writes the series by name, except those of servers (origin_metrics.h), and the number of names
// without one.
void write_series(MetricsWriter& out, const SeriesReport& series);

}  // namespace encore::server

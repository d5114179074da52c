// What /metrics says of requests: how long they took, how large their responses were, and what
// became of them by listener, rule and error. Pure, any thread.
#pragma once

#include "proxy/observe/metrics_writer.h"
#include "proxy/observe/snapshot.h"

namespace encore::server {

// Response times and sizes, by class of outcome.
void write_distributions(MetricsWriter& out, const Snapshot& snapshot);
// What has series by name, but for servers (origin_metrics.h), and how many names have none.
void write_series(MetricsWriter& out, const SeriesReport& series);

}  // namespace encore::server

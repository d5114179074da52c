// Writes the metrics of origins and their servers. Pure, any thread.
#pragma once

#include "proxy/observe/metrics_writer.h"
#include "proxy/observe/snapshot.h"

namespace encore::server {

// Nothing where there are no servers. A server that is named twice is one here.
void write_origins(MetricsWriter& out, const Snapshot& snapshot);

}  // namespace encore::server

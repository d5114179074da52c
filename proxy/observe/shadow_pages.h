// Writes the results of the simulated caches: as JSON, as metrics and for people. Pure; any thread.
#pragma once

#include <string>

#include "proxy/observe/metrics_writer.h"
#include "proxy/observe/shadow_caches.h"

namespace encore::server {

std::string shadow_json(const ShadowReports& reports);
// The content of its page, as HTML.
std::string shadow_html(const ShadowReports& reports);
// Nothing where nothing is simulated.
void write_shadow_metrics(MetricsWriter& out, const ShadowReports& reports);
// Figures of probation; zeros while no samples are taken.
void write_tuning_metrics(MetricsWriter& out, const std::optional<TuningReport>& tuning);

}  // namespace encore::server

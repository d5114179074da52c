// Opens trace files, in any of the known formats. A reader is confined to one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "sim/trace/trace_reader.h"

namespace encore::sim {

// Errors: it cannot be opened or decompressed, is empty, or its format is unknown: then the message
// says what it looks like, and what to do; the monitor stopped it before its format was known.
Result<std::unique_ptr<TraceReader>> open_trace(const std::string& path,
                                                const TraceOptions& options);

// The files one after the other, as one trace. Begins a phase of the monitor's, as long as all the
// files are where their sizes are known.
Result<std::unique_ptr<TraceReader>> open_traces(const std::vector<std::string>& paths,
                                                 const TraceOptions& options);

}  // namespace encore::sim

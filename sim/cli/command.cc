#include "sim/cli/command.h"

#include "sim/trace/open_trace.h"

namespace encore::sim {

Result<std::unique_ptr<TraceReader>> Context::open(const std::vector<std::string>& files,
                                                   const TraceOptions& options) const {
  return given != nullptr && given->open ? given->open(options) : open_traces(files, options);
}

}  // namespace encore::sim

#include "sim/python/trace.h"

#include <CLI/CLI.hpp>
#include <sstream>

#include "base/cli/program.h"
#include "sim/cli/trace_options.h"

namespace encore::sim::python {

Result<TraceOptions> Trace::options() const {
  std::ostringstream out;
  std::ostringstream err;
  CLI::App app("", "encore_sim");
  Arguments arguments(app);
  TraceArguments read_as;
  read_as.declare(arguments);
  const std::vector<const CLI::App*> apps{&app};
  if (parse_command_line(app, apps, words(), {"encore_sim", out, err})) {
    const std::string said = err.str();
    return fail(said.substr(0, said.find_last_not_of('\n') + 1));
  }
  return read_as.options();
}

}  // namespace encore::sim::python

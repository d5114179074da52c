// The Python module encore_sim._core; encore_sim/__init__.py is its public face.
#include "sim/python/binding.h"

namespace encore::sim::python {
namespace {

PYBIND11_MODULE(_core, module) {
  module.doc() = "The laboratory encore-sim: use the package encore_sim.";
  module.attr("__version__") = ENCORE_VERSION;
  bind_traces(module);
  bind_commands(module);
  bind_filters(module);
  bind_theory(module);
}

}  // namespace
}  // namespace encore::sim::python

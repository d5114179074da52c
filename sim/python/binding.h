// Words that the bindings of the Python module share. All of it needs the interpreter's lock (GIL),
// if it does not say otherwise.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <utility>

#include "base/error.h"

namespace encore::sim::python {

namespace py = pybind11;

// Returns the value. Errors: ValueError with the error's message.
template <typename T>
T value_of(Result<T>&& result) {
  if (!result) {
    throw py::value_error(result.error().message);
  }
  return std::move(*result);
}

// Each adds its part to the module.
void bind_traces(py::module_& module);
void bind_commands(py::module_& module);
void bind_filters(py::module_& module);
void bind_theory(py::module_& module);

}  // namespace encore::sim::python

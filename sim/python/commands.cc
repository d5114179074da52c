// Commands of encore-sim as functions: words and objects in, the report out. Why the words:
// docs/decisions/0581.
#include <pybind11/stl.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "cache/options.h"
#include "sim/cli/program.h"
#include "sim/python/python_policy.h"
#include "sim/python/trace.h"

namespace encore::sim::python {
namespace {

// How often a running command looks for Ctrl-C.
constexpr std::chrono::milliseconds kLook{50};

py::object to_python(const Row& row);

py::object to_python(const std::vector<Row>& rows) {
  py::list list;
  for (const Row& row : rows) {
    list.append(to_python(row));
  }
  return list;
}

struct ValueToPython {
  py::object operator()(std::monostate /*nothing*/) const { return py::none(); }
  py::object operator()(const std::vector<Row>& rows) const { return to_python(rows); }
  // Names from a trace may hold any bytes.
  py::object operator()(const std::string& text) const {
    return py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "replace"));
  }
  template <typename T>
  py::object operator()(const T& value) const {
    return py::cast(value);
  }
};

py::object to_python(const Row& row) {
  py::dict object;
  for (const Field& field : row) {
    object[py::str(field.key)] = std::visit(ValueToPython{}, field.value);
  }
  return object;
}

// The same keys as in the JSON (sim/report/report.h).
py::dict to_python(const Report& report) {
  py::dict all;
  all["command"] = report.command;
  all["version"] = ENCORE_VERSION;
  all["seed"] = report.seed;
  all["interrupted"] = report.interrupted;
  all["parameters"] = to_python(report.parameters);
  all["rows"] = py::list();
  for (const Table& table : report.tables) {
    all[py::str(table.key)] = to_python(table.rows);
  }
  all["notes"] = report.notes;
  all["paste"] = report.paste;
  all["machine"] = to_python(report.machine);
  return all;
}

// Runs the work in a thread, without the interpreter's lock, and looks for signals meanwhile.
// Throws the exception of a signal's handler (KeyboardInterrupt), after the work has ended.
template <typename Work>
auto run_interruptibly(Monitor& monitor, Work work) {
  std::optional<py::error_already_set> interrupt;
  std::packaged_task<decltype(work())()> task(std::move(work));
  auto result = task.get_future();
  {
    const py::gil_scoped_release others;
    const std::jthread worker(std::move(task));
    while (result.wait_for(kLook) == std::future_status::timeout) {
      const py::gil_scoped_acquire lock;
      if (!interrupt && PyErr_CheckSignals() != 0) {
        interrupt.emplace();
        monitor.stop = true;
      }
    }
  }
  if (interrupt) {
    throw std::move(*interrupt);
  }
  return result.get();
}

py::dict call(std::vector<std::string> words, const std::shared_ptr<Trace>& trace,
              const py::object& policy) {
  Monitor monitor;
  PolicyFailure failure(monitor);
  Given given;
  if (trace != nullptr) {
    const std::vector<std::string> named = trace->words();
    words.insert(words.end(), named.begin(), named.end());
    if (!trace->has_files()) {
      given.open = [&](const TraceOptions& options) { return trace->open(options); };
    }
  }
  if (!policy.is_none()) {
    given.own = python_policy(policy, failure);
  }
  auto report = run_interruptibly(monitor, [&] { return call_command(words, given, monitor); });
  failure.raise();
  return to_python(value_of(std::move(report)));
}

template <typename Names>
std::vector<std::string> listed(const Names& names) {
  return {names.begin(), names.end()};
}

}  // namespace

void bind_commands(py::module_& module) {
  module.def("call", &call, py::arg("words"), py::arg("trace") = py::none(),
             py::arg("policy") = py::none());
  module.def("eviction_policies", [] { return listed(cache::kEvictionNames); });
  module.def("admission_policies", [] { return listed(cache::kMemoryAdmissionNames); });
}

}  // namespace encore::sim::python

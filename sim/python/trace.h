// Trace: the requests of a Python program: files of any format that sim/trace reads, or NumPy
// arrays, which are read where they are. A trace can be read any number of times.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "sim/python/binding.h"
#include "sim/trace/trace_reader.h"

namespace encore::sim::python {

class Trace {
 public:
  Trace() = default;
  virtual ~Trace() = default;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Thread-safe, without the interpreter's lock. Errors: as open_traces().
  virtual Result<std::unique_ptr<TraceReader>> open(const TraceOptions& options) const = 0;
  // Options of `encore-sim` that name the trace and say how it is read.
  virtual std::vector<std::string> words() const = 0;
  // False: open() takes the place of the files in words().
  virtual bool has_files() const = 0;
  // Options as words() has them. Errors: words that `encore-sim` refuses.
  Result<TraceOptions> options() const;
};

}  // namespace encore::sim::python

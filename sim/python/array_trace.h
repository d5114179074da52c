// ArrayTrace: a trace in NumPy arrays, which it borrows: they must not change while it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "sim/python/trace.h"

namespace encore::sim::python {

// A column of numbers at equal distances, or one number for all requests.
template <typename T>
struct Strided {
  const std::byte* first = nullptr;
  std::ptrdiff_t stride = 0;
  T all{};

  T at(std::size_t i) const {
    if (first == nullptr) {
      return all;
    }
    T value;
    std::memcpy(&value, first + static_cast<std::ptrdiff_t>(i) * stride, sizeof value);
    return value;
  }
};

// Columns of a trace. Keys are numbers (hashed as those of encore-sim's binary formats), or hashes
// as another trace gave them, or texts.
struct Columns {
  std::size_t requests = 0;
  Strided<std::uint64_t> id;
  Strided<filter::Hash128> hash;  // instead of `id`, if it has values
  std::string texts;              // instead of both: all of them
  std::vector<std::size_t> text_ends;
  Strided<std::uint64_t> size;
  Strided<std::int64_t> time_ns;
  Strided<std::uint32_t> ttl;
};

class ArrayTrace final : public Trace {
 public:
  // `owners` keep the arrays alive. Errors: a size above a pebibyte, sizes of more than 4 EiB
  // together; no request.
  static Result<std::unique_ptr<Trace>> create(Columns columns, std::vector<py::object> owners);

  Result<std::unique_ptr<TraceReader>> open(const TraceOptions& options) const override;
  std::vector<std::string> words() const override { return {"--", "arrays"}; }
  bool has_files() const override { return false; }

 private:
  ArrayTrace(Columns columns, std::vector<py::object> owners);
  Columns columns_;
  std::vector<py::object> owners_;
};

}  // namespace encore::sim::python

// Bindings of traces: files, arrays, and blocks of requests as arrays.
#include <pybind11/stl.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "sim/python/array_trace.h"
#include "sim/trace/open_trace.h"

namespace encore::sim::python {
namespace {

// encore-sim's default (--seed 1).
constexpr std::uint64_t kSeed = 1;

class FileTrace final : public Trace {
 public:
  FileTrace(std::vector<std::string> files, std::vector<std::string> options)
      : files_(std::move(files)), options_(std::move(options)) {}

  Result<std::unique_ptr<TraceReader>> open(const TraceOptions& options) const override {
    return open_traces(files_, options);
  }
  std::vector<std::string> words() const override {
    std::vector<std::string> words = options_;
    words.emplace_back("--");
    words.insert(words.end(), files_.begin(), files_.end());
    return words;
  }
  bool has_files() const override { return true; }

 private:
  std::vector<std::string> files_;
  std::vector<std::string> options_;
};

std::unique_ptr<Trace> open_files(std::vector<std::string> files,
                                  std::vector<std::string> options) {
  auto trace = std::make_unique<FileTrace>(std::move(files), std::move(options));
  value_of(trace->options());
  return trace;
}

// A one-dimensional array of T, of so many numbers.
template <typename T>
Strided<T> column(const py::array& array, std::size_t requests, const char* name) {
  if (array.ndim() != 1 || static_cast<std::size_t>(array.shape(0)) != requests) {
    throw py::value_error(std::string(name) + " has other than one number for each of " +
                          std::to_string(requests) + " keys, accepted: as many");
  }
  return {.first = static_cast<const std::byte*>(array.data()), .stride = array.strides(0)};
}

template <typename T>
Strided<T> column_or_all(const py::object& given, std::size_t requests, const char* name) {
  if (py::isinstance<py::array>(given)) {
    return column<T>(py::reinterpret_borrow<py::array>(given), requests, name);
  }
  return {.all = given.cast<T>()};
}

// REQUIRES (encore_sim/__init__.py does it): arrays of the column's own type; `key` is an array of
// uint64, of one dimension or two, or a list of bytes.
std::unique_ptr<Trace> of_arrays(const py::object& key, const py::object& size,
                                 const py::object& time_ns, const py::object& ttl) {
  Columns columns;
  if (py::isinstance<py::array>(key)) {
    const auto array = py::reinterpret_borrow<py::array>(key);
    columns.requests = static_cast<std::size_t>(array.shape(0));
    if (array.ndim() == 1) {
      columns.id = column<std::uint64_t>(array, columns.requests, "key");
    } else {
      columns.hash = {.first = static_cast<const std::byte*>(array.data()),
                      .stride = array.strides(0)};
    }
  } else {
    for (const py::handle& text : key) {
      columns.texts += text.cast<std::string_view>();
      columns.text_ends.push_back(columns.texts.size());
    }
    columns.requests = columns.text_ends.size();
  }
  columns.size = column_or_all<std::uint64_t>(size, columns.requests, "size");
  columns.time_ns = column_or_all<std::int64_t>(time_ns, columns.requests, "time_ns");
  columns.ttl = column_or_all<std::uint32_t>(ttl, columns.requests, "ttl");
  return value_of(ArrayTrace::create(std::move(columns), {key, size, time_ns, ttl}));
}

using Block = std::vector<Request>;

// A column of the block, as an array that keeps the block alive and copies nothing.
template <typename T>
py::array view(const Block& block, std::size_t offset, const py::capsule& owner) {
  const auto* first = reinterpret_cast<const std::byte*>(block.data()) + offset;
  return py::array(py::dtype::of<T>(), {block.size()}, {sizeof(Request)}, first, owner);
}

py::dict columns_of(std::unique_ptr<Block> block) {
  const Block& requests = *block;
  const py::capsule owner(block.release(),
                          [](void* memory) { delete static_cast<Block*>(memory); });
  py::dict columns;
  columns["time_ns"] = view<std::int64_t>(requests, offsetof(Request, time_ns), owner);
  const auto* keys = reinterpret_cast<const std::byte*>(requests.data()) + offsetof(Request, key);
  columns["key"] = py::array(py::dtype::of<std::uint64_t>(), {requests.size(), std::size_t{2}},
                             {sizeof(Request), sizeof(std::uint64_t)}, keys, owner);
  columns["size"] = view<std::uint64_t>(requests, offsetof(Request, size_bytes), owner);
  columns["ttl"] = view<std::uint32_t>(requests, offsetof(Request, ttl_seconds), owner);
  return columns;
}

// One reading of a trace, in blocks.
class Batches {
 public:
  Batches(std::shared_ptr<const Trace> trace, std::size_t requests, std::uint64_t seed)
      : trace_(std::move(trace)), requests_(requests) {
    if (requests == 0) {
      throw py::value_error("batches of 0 requests, accepted: 1 or more");
    }
    TraceOptions options = value_of(trace_->options());
    options.identity_seed = {seed, seed};
    reader_ = value_of(trace_->open(options));
  }

  py::dict next() {
    auto block = std::make_unique<Block>(requests_);
    Result<std::size_t> got = 0;
    std::size_t filled = 0;
    {
      const py::gil_scoped_release others;
      do {
        got = reader_->read(std::span(*block).subspan(filled));
        filled += got.value_or(0);
      } while (got && *got != 0 && filled < block->size());
    }
    value_of(std::move(got));
    if (filled == 0) {
      throw py::stop_iteration();
    }
    block->resize(filled);
    if (filled < requests_ / 2) {
      block->shrink_to_fit();
    }
    return columns_of(std::move(block));
  }

  // Counts so far, and how the files are read.
  py::dict counts() const {
    const TraceCounts& counts = reader_->counts();
    py::list sources;
    for (const TraceSource& source : reader_->sources()) {
      py::dict one;
      one["file"] = source.path;
      one["format"] = std::string(to_string(source.format));
      one["confidence"] = std::string(to_string(source.confidence));
      one["reason"] = source.reason;
      sources.append(one);
    }
    py::dict all;
    all["lines"] = counts.lines;
    all["counted"] = counts.counted;
    all["skipped"] = counts.skipped;
    all["bad"] = counts.bad;
    all["without_size"] = counts.without_size;
    all["bad_shown"] = counts.bad_shown;
    all["sources"] = sources;
    return all;
  }

 private:
  std::shared_ptr<const Trace> trace_;
  std::size_t requests_;
  std::unique_ptr<TraceReader> reader_;
};

std::vector<std::string> trace_formats() {
  return {
#define ENCORE_FORMAT_NAME(id, name, what) name,
      ENCORE_TRACE_FORMATS(ENCORE_FORMAT_NAME)
#undef ENCORE_FORMAT_NAME
  };
}

}  // namespace

void bind_traces(py::module_& module) {
  py::class_<Trace, std::shared_ptr<Trace>> type(module, "Trace",
                                                 "A trace: open_trace and array_trace make one.");
  type.attr("__module__") = "encore_sim";
  py::class_<Batches>(module, "Batches")
      .def("__iter__", [](const py::object& self) { return self; })
      .def("__next__", &Batches::next)
      .def("counts", &Batches::counts);
  module.def("open_files", [](std::vector<std::string> files, std::vector<std::string> options) {
    return std::shared_ptr<Trace>(open_files(std::move(files), std::move(options)));
  });
  module.def("of_arrays", [](const py::object& key, const py::object& size,
                             const py::object& time_ns, const py::object& ttl) {
    return std::shared_ptr<Trace>(of_arrays(key, size, time_ns, ttl));
  });
  module.def(
      "batches",
      [](std::shared_ptr<Trace> trace, std::size_t requests, std::uint64_t seed) {
        return Batches(std::move(trace), requests, seed);
      },
      py::arg("trace"), py::arg("requests"), py::arg("seed") = kSeed);
  module.def("trace_formats", &trace_formats);
}

}  // namespace encore::sim::python

#include "sim/python/array_trace.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "sim/trace/record_format.h"

namespace encore::sim::python {
namespace {

// The sum of all sizes must be far from 2^64, as of files.
constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 62U;

class ArrayReader final : public TraceReader {
 public:
  ArrayReader(const Columns& columns, const TraceOptions& options)
      : columns_(columns), seed_(options.identity_seed), monitor_(options.monitor) {
    add_source({.path = "arrays",
                .format = TraceFormat::kEncore,
                .confidence = Confidence::kGiven,
                .reason = {}});
    if (monitor_ != nullptr) {
      monitor_->begin("reading", columns.requests);
    }
  }

  Result<std::size_t> read(std::span<Request> out) override {
    if (monitor_ != nullptr && monitor_->stopped()) {
      return 0;
    }
    const std::size_t count = std::min(out.size(), columns_.requests - at_);
    for (Request& request : out.first(count)) {
      request = {.key = key(at_),
                 .time_ns = columns_.time_ns.at(at_),
                 .size_bytes = columns_.size.at(at_),
                 .ttl_seconds = columns_.ttl.at(at_)};
      ++at_;
    }
    counts_.lines += count;
    counts_.counted += count;
    if (monitor_ != nullptr) {
      monitor_->advance(count);
    }
    return count;
  }
  const TraceCounts& counts() const override { return counts_; }
  TraceFormat format() const override { return TraceFormat::kEncore; }

 private:
  filter::Hash128 key(std::size_t i) const {
    if (columns_.hash.first != nullptr) {
      return columns_.hash.at(i);
    }
    if (columns_.text_ends.empty()) {
      return hash_of_id(columns_.id.at(i), seed_);
    }
    const std::size_t begin = i == 0 ? 0 : columns_.text_ends[i - 1];
    return filter::identify(
               seed_, std::string_view(columns_.texts).substr(begin, columns_.text_ends[i] - begin))
        .hash;
  }

  const Columns& columns_;
  filter::Seed seed_;
  Monitor* monitor_;
  std::size_t at_ = 0;
  TraceCounts counts_;
};

}  // namespace

ArrayTrace::ArrayTrace(Columns columns, std::vector<py::object> owners)
    : columns_(std::move(columns)), owners_(std::move(owners)) {}

Result<std::unique_ptr<Trace>> ArrayTrace::create(Columns columns, std::vector<py::object> owners) {
  if (columns.requests == 0) {
    return fail("a trace of no requests, accepted: one or more");
  }
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < columns.requests; ++i) {
    const std::uint64_t size = columns.size.at(i);
    if (size > kSizeMax) {
      return fail("size[" + std::to_string(i) + "] = " + std::to_string(size) +
                  ", accepted: 0 to 2^50 bytes");
    }
    bytes += size;
    if (bytes > kBytesMax) {
      return fail("the sizes of all requests add up to more than 4 EiB, accepted: less");
    }
  }
  return std::unique_ptr<Trace>(new ArrayTrace(std::move(columns), std::move(owners)));
}

Result<std::unique_ptr<TraceReader>> ArrayTrace::open(const TraceOptions& options) const {
  return std::make_unique<ArrayReader>(columns_, options);
}

}  // namespace encore::sim::python

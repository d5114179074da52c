#include "sim/trace/filtered_reader.h"

#include <utility>

namespace encore::sim {

FilteredReader::FilteredReader(std::unique_ptr<TraceReader> inner, const RequestFilter& filter)
    : inner_(std::move(inner)), filter_(filter) {
  for (const TraceSource& source : inner_->sources()) {
    add_source(source);
  }
}

bool FilteredReader::takes(const Request& request) {
  if (!first_ns_) {
    first_ns_ = request.time_ns;
  }
  const Nanoseconds time(request.time_ns - *first_ns_);
  return time >= filter_.from && (!filter_.until || time < *filter_.until) &&
         request.size_bytes >= filter_.size_min && request.size_bytes <= filter_.size_max;
}

Result<std::size_t> FilteredReader::read(std::span<Request> out) {
  while (true) {
    const auto got = inner_->read(out);
    if (!got || *got == 0) {
      return got;
    }
    std::size_t taken = 0;
    for (const Request& request : out.first(*got)) {
      if (takes(request)) {
        out[taken++] = request;
      }
    }
    left_out_ += *got - taken;
    if (taken != 0) {
      return taken;
    }
  }
}

}  // namespace encore::sim

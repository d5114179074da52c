// FilteredReader: those requests of a trace that lie in a span of time and of sizes. Confined to
// one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "sim/trace/trace_reader.h"

namespace encore::sim {

struct RequestFilter {
  // Since the first request of the trace: from the one on, up to before the other.
  Nanoseconds from{};
  std::optional<Nanoseconds> until = {};
  std::uint64_t size_min = 0;
  std::uint64_t size_max = UINT64_MAX;
};

class FilteredReader final : public TraceReader {
 public:
  FilteredReader(std::unique_ptr<TraceReader> inner, const RequestFilter& filter);

  Result<std::size_t> read(std::span<Request> out) override;
  // Those of the trace: what the filter leaves out was counted.
  const TraceCounts& counts() const override { return inner_->counts(); }
  TraceFormat format() const override { return inner_->format(); }
  std::uint64_t left_out() const { return left_out_; }

 private:
  bool takes(const Request& request);

  std::unique_ptr<TraceReader> inner_;
  RequestFilter filter_;
  std::optional<std::int64_t> first_ns_;
  std::uint64_t left_out_ = 0;
};

}  // namespace encore::sim

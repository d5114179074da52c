// Http2Counts: what limits of HTTP/2 one worker has met, and what malformed messages. One writer;
// others may read.
#pragma once

#include <array>
#include <cstdint>

#include "proxy/h2/options.h"
#include "proxy/observe/counter.h"

namespace encore::server {

template <typename Count>
struct Http2CountsOf {
  std::array<Count, h2::kAllowanceCount> floods{};
  std::array<Count, h2::kLimitCount> limits{};
  std::array<Count, h2::kMalformedReasons> malformed{};
};

struct Http2Counts : Http2CountsOf<Counter> {
  // Takes what the sessions of the worker have counted by now.
  void set(const h2::Counters& counters) noexcept;

 private:
  h2::Counters last_;  // taken last
};

struct Http2Snapshot : Http2CountsOf<std::uint64_t> {
  void add(const Http2Counts& counts);
};

class MetricsWriter;
void write_http2(MetricsWriter& out, const Http2Snapshot& counts);
// The same of connections to origins.
void write_origin_http2(MetricsWriter& out, const Http2Snapshot& counts);

}  // namespace encore::server

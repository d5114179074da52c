#include "proxy/observe/http2_counts.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "proxy/observe/metrics_writer.h"

namespace encore::server {
namespace {

template <std::size_t Size>
void set_all(std::array<Counter, Size>& counts, const std::array<std::uint64_t, Size>& now) {
  for (std::size_t i = 0; i < Size; ++i) counts[i].add(now[i] - counts[i].get());
}

template <std::size_t Size>
void add_all(std::array<std::uint64_t, Size>& sums, const std::array<Counter, Size>& counts) {
  for (std::size_t i = 0; i < Size; ++i) sums[i] += counts[i].get();
}

// `first`: the first value of `Kind` that is written.
template <typename Kind, std::size_t Size>
void write(MetricsWriter& out, std::string_view name, std::string_view label, std::string_view help,
           const std::array<std::uint64_t, Size>& counts, std::size_t first = 0) {
  out.family(name, "counter", help);
  for (std::size_t i = first; i < Size; ++i) {
    out.sample(name, fmt::format("{}=\"{}\"", label, h2::to_string(static_cast<Kind>(i))),
               counts[i]);
  }
}

}  // namespace

void Http2Counts::set(const h2::Counters& counters) noexcept {
  // This is called for each read, and most reads change none of them.
  if (counters.floods == last_.floods && counters.limits == last_.limits &&
      counters.malformed == last_.malformed) {
    return;
  }
  last_ = counters;
  set_all(floods, counters.floods);
  set_all(limits, counters.limits);
  set_all(malformed, counters.malformed);
}

void Http2Snapshot::add(const Http2Counts& counts) {
  add_all(floods, counts.floods);
  add_all(limits, counts.limits);
  add_all(malformed, counts.malformed);
}

void write_http2(MetricsWriter& out, const Http2Snapshot& counts) {
  write<h2::Allowance>(out, "http2_floods_total", "kind",
                       "HTTP/2 connections of clients ended for too many frames of a kind.",
                       counts.floods);
  write<h2::Limit>(out, "http2_limits_total", "limit",
                   "HTTP/2 streams or connections of clients ended by a limit.", counts.limits);
  write<h2::Malformed>(out, "http2_malformed_total", "reason", "Malformed HTTP/2 requests, reset.",
                       counts.malformed, 1);
}

void write_origin_http2(MetricsWriter& out, const Http2Snapshot& counts) {
  write<h2::Allowance>(out, "origin_http2_floods_total", "kind",
                       "HTTP/2 connections to origins ended for too many frames of a kind.",
                       counts.floods);
  write<h2::Limit>(out, "origin_http2_limits_total", "limit",
                   "HTTP/2 streams or connections to origins ended by a limit.", counts.limits);
  write<h2::Malformed>(out, "origin_http2_malformed_total", "reason",
                       "Malformed HTTP/2 responses, reset.", counts.malformed, 1);
}

}  // namespace encore::server

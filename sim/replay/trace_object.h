// The numbering of a trace's objects, and requests that carry it. Values.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/replay/flat_map.h"
#include "sim/trace/request.h"

namespace encore::sim {

// A request as the simulations read it, 48 bytes.
struct ReplayRequest {
  filter::Hash128 key;
  std::int64_t time_ns = 0;
  std::uint64_t size_bytes = 0;
  // Which request asks for the same object next, counted from 0; kNever. Only where the whole
  // trace was read before.
  std::uint64_t next = UINT64_MAX;
  std::uint32_t ttl_seconds = kNoTtl;
  std::uint32_t object = 0;  // from 0 in order of appearance
};
inline constexpr std::uint64_t kNeverAgain = UINT64_MAX;

// Numbers objects and counts their requests. Thread-compatible.
class ObjectTable {
 public:
  ReplayRequest number(const Request& request) {
    const auto [number, is_new] = numbers_.insert(request.key);
    if (is_new) {
      *number = static_cast<std::uint32_t>(counts_.size());
      counts_.push_back(0);
      sizes_.push_back(0);
    }
    counts_[*number] += counts_[*number] == UINT32_MAX ? 0U : 1U;
    if (request.size_bytes > sizes_[*number]) {
      footprint_bytes_ += request.size_bytes - sizes_[*number];
      sizes_[*number] = request.size_bytes;
    }
    return {.key = request.key,
            .time_ns = request.time_ns,
            .size_bytes = request.size_bytes,
            .ttl_seconds = request.ttl_seconds,
            .object = *number};
  }
  std::size_t objects() const { return counts_.size(); }
  std::uint32_t requests_of(std::uint32_t object) const { return counts_[object]; }
  std::uint64_t largest_size_of(std::uint32_t object) const { return sizes_[object]; }
  // The sum of all objects' largest sizes so far.
  std::uint64_t footprint_bytes() const { return footprint_bytes_; }

 private:
  FlatMap<std::uint32_t> numbers_;
  std::vector<std::uint32_t> counts_;
  std::vector<std::uint64_t> sizes_;
  std::uint64_t footprint_bytes_ = 0;
};

// Fills in `next` of a whole trace.
void link_next(std::vector<ReplayRequest>& requests, std::size_t objects);

}  // namespace encore::sim

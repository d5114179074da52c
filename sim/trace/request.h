// Request: one request of a trace, in the compact form that simulations read. A value.
#pragma once

#include <cstdint>

#include "filter/hash.h"

namespace encore::sim {

inline constexpr std::uint32_t kNoTtl = 0xffffffffU;

// No object is larger: what says so is damaged, or another format.
inline constexpr std::uint64_t kSizeMax = std::uint64_t{1} << 50U;  // a pebibyte

struct Request {
  filter::Hash128 key;       // identity hash of the key's bytes, see TraceOptions::identity_seed
  std::int64_t time_ns = 0;  // as the trace has it (since 1970, or since its start); 0: none
  std::uint64_t size_bytes = 0;  // size of this request's response
  std::uint32_t ttl_seconds = kNoTtl;
};

}  // namespace encore::sim

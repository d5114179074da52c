// Limits of a session, and the counters that it keeps. Thread-compatible.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "proxy/h2/allowances.h"
#include "proxy/h2/malformed.h"

namespace encore::h2 {

struct Options {
  std::uint32_t streams_max = 100;  // concurrent ones of the peer
  // Bytes of a header list as RFC 9113 6.5.2 counts it; announced. A head beyond it is still read,
  // up to twice of it, for the parser behind to refuse (431). There the block is cut, and the
  // connection ends, for a block that is not decoded leaves a decoder that is of no use.
  std::size_t head_bytes_max = std::size_t{32} * 1024;
  // Fields of one block, crumbs of cookies counted each; beyond it the block is cut, too.
  std::size_t fields_max = 512;
  // CONTINUATION frames of one block (CVE-2024-28182).
  std::uint32_t continuations_max = 8;
  // Content that was received and that consume() has not been called for, at most.
  std::int32_t stream_window_bytes = 256 * 1024;
  std::int32_t connection_window_bytes = 1024 * 1024;
  // Content counts against the connection's window only until its handler has it: the windows of
  // the streams alone bound the bytes that are kept, and a stream that stands still stops no other.
  bool has_streams_apart = false;
  // While that much of frames that no window holds back is unsent, nothing more is read.
  std::size_t output_bytes_max = std::size_t{64} * 1024;
  // A stream that has bytes to send and whose client has let less than kStallBytes of them go in
  // this time is reset.
  Nanoseconds stall_time = std::chrono::seconds(30);
  // With that many of them the connection ends.
  std::uint32_t stalled_streams_max = 3;
  // Each allowance is that many times as large: a server talks more than a client.
  std::uint32_t allowance_factor = 1;
  // A header block takes no longer.
  Nanoseconds head_time = std::chrono::seconds(10);
  // Servers: request lines name whole URIs, as forward proxies have it.
  bool has_absolute_form = false;
  // Servers: extended CONNECT (RFC 8441).
  bool takes_protocols = true;

  // Takes over the limits of heads as text. More fields are decoded than those allow: cookies come
  // in crumbs, and a list that is a little too large gets its 431.
  void limit_heads(std::size_t bytes, std::size_t fields) {
    head_bytes_max = bytes;
    fields_max = std::max(fields_max, 4 * fields);
  }
};

// Returns a configured limit as the session takes it. There 0 means none.
constexpr Nanoseconds time_limit(Nanoseconds configured) {
  return configured.count() == 0 ? std::chrono::hours(24 * 365) : configured;
}

inline constexpr std::uint64_t kStallBytes = 1024;

// Limits that are no Allowance: name in log and counters.
#define ENCORE_H2_LIMITS(X)                   \
  X(kHeadBytes, "head-bytes")                 \
  X(kHeadFields, "head-fields")               \
  X(kHeadTime, "head-time")                   \
  X(kContinuations, "continuations")          \
  X(kSettingsInFrame, "settings-in-frame")    \
  X(kStalledStream, "stalled-stream")         \
  X(kStalledConnection, "stalled-connection") \
  X(kStreamsRefused, "streams-refused")

enum class Limit : std::uint8_t {
#define ENCORE_H2_LIMIT(id, name) id,
  ENCORE_H2_LIMITS(ENCORE_H2_LIMIT)
#undef ENCORE_H2_LIMIT
      kCount_
};
inline constexpr std::size_t kLimitCount = static_cast<std::size_t>(Limit::kCount_);
std::string_view to_string(Limit which) noexcept;

// Counted by all sessions of a thread together; the owner reads them.
struct Counters {
  std::uint64_t sessions = 0;
  std::uint64_t streams = 0;
  // Streams that ended before their answer had, by whomever.
  std::uint64_t streams_reset = 0;
  std::array<std::uint64_t, kMalformedReasons> malformed = {};  // messages
  std::array<std::uint64_t, kAllowanceCount> floods = {};       // connections that each has ended
  std::array<std::uint64_t, kLimitCount> limits = {};           // times that each was met

  void add(Limit which) { ++limits[static_cast<std::size_t>(which)]; }
  std::uint64_t of(Limit which) const { return limits[static_cast<std::size_t>(which)]; }
  std::uint64_t of(Allowance which) const { return floods[static_cast<std::size_t>(which)]; }
  std::uint64_t of(Malformed which) const { return malformed[static_cast<std::size_t>(which)]; }
};

}  // namespace encore::h2

// Allowances: how often a peer may do each thing that costs us something and brings nobody forward
// (the floods of CVE-2019-9511 to 9518, CVE-2023-44487, CVE-2025-8671). Each thing has a bucket
// that fills with time, and with the work that goes with it (docs/decisions/0473). Takes `now`.
// Confined to its session's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/time.h"

namespace encore::h2 {

// A thing; its name in log and counters; how many at the same time; how many a second; how many
// more for each piece of work (a request, or 512 bytes of content sent in one frame).
//   reset-unanswered  streams that end before their answer, by either end
//   reset-answered    streams that end in the middle of it: clients that look around do so
//   settings          SETTINGS, with our acknowledgements
//   ping              a client may measure its pipe by them while it downloads
//   priority          PRIORITY and PRIORITY_UPDATE
//   window            WINDOW_UPDATE: two for a frame of content is usual
//   empty             DATA and CONTINUATION with no content that end nothing
//   tiny              DATA with less than 16 bytes that end nothing: short messages of gRPC
//   unknown           frames of types that are not known here
#define ENCORE_H2_ALLOWANCES(X)                       \
  X(kResetUnanswered, "reset-unanswered", 100, 33, 0) \
  X(kResetAnswered, "reset-answered", 1000, 100, 0)   \
  X(kSettings, "settings", 20, 1, 0)                  \
  X(kPing, "ping", 100, 10, 1)                        \
  X(kPriority, "priority", 200, 20, 8)                \
  X(kWindow, "window", 200, 50, 8)                    \
  X(kEmpty, "empty", 100, 10, 0)                      \
  X(kTiny, "tiny", 10000, 5000, 1)                    \
  X(kUnknown, "unknown", 100, 10, 2)

enum class Allowance : std::uint8_t {
#define ENCORE_H2_ALLOWANCE(id, name, burst, rate, work) id,
  ENCORE_H2_ALLOWANCES(ENCORE_H2_ALLOWANCE)
#undef ENCORE_H2_ALLOWANCE
      kCount_
};
inline constexpr std::size_t kAllowanceCount = static_cast<std::size_t>(Allowance::kCount_);
std::string_view to_string(Allowance which) noexcept;

struct AllowanceLimit {
  std::uint32_t burst;
  std::uint32_t per_second;
  std::uint32_t per_work;
};
// The limits of the table above.
AllowanceLimit limit_of(Allowance which) noexcept;

class Allowances {
 public:
  // Each is `factor` times as large as limit_of() says.
  explicit Allowances(std::uint32_t factor = 1) : factor_(factor) {}
  // Uses one of `which`. False where none is left: the peer has done it too often.
  bool use(Allowance which, MonotonicTime now) noexcept;
  // Work was done: what goes with it is allowed.
  void add_work() noexcept;

 private:
  struct Bucket {
    std::uint32_t used = 0;       // falls with time
    std::uint32_t filled_at = 0;  // milliseconds, of any start; wraps
  };
  const std::uint32_t factor_;
  std::array<Bucket, kAllowanceCount> buckets_ = {};
};

}  // namespace encore::h2

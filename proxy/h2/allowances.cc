#include "proxy/h2/allowances.h"

#include <algorithm>
#include <chrono>

namespace encore::h2 {
namespace {

constexpr std::array<AllowanceLimit, kAllowanceCount> kLimits = {{
#define ENCORE_H2_ALLOWANCE(id, name, burst, rate, work) {burst, rate, work},
    ENCORE_H2_ALLOWANCES(ENCORE_H2_ALLOWANCE)
#undef ENCORE_H2_ALLOWANCE
}};

constexpr std::array<std::string_view, kAllowanceCount> kNames = {
#define ENCORE_H2_ALLOWANCE(id, name, burst, rate, work) name,
    ENCORE_H2_ALLOWANCES(ENCORE_H2_ALLOWANCE)
#undef ENCORE_H2_ALLOWANCE
};

std::uint32_t milliseconds_of(MonotonicTime now) {
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count());
}

}  // namespace

std::string_view to_string(Allowance which) noexcept {
  return kNames[static_cast<std::size_t>(which)];
}

AllowanceLimit limit_of(Allowance which) noexcept {
  return kLimits[static_cast<std::size_t>(which)];
}

bool Allowances::use(Allowance which, MonotonicTime now) noexcept {
  Bucket& bucket = buckets_[static_cast<std::size_t>(which)];
  AllowanceLimit limit = limit_of(which);
  limit.burst *= factor_;
  limit.per_second *= factor_;
  const std::uint32_t at = milliseconds_of(now);
  if (bucket.used == 0) bucket.filled_at = at;
  const std::uint64_t back = std::uint64_t{at - bucket.filled_at} * limit.per_second / 1000;
  if (back != 0) {
    bucket.used -= static_cast<std::uint32_t>(std::min<std::uint64_t>(back, bucket.used));
    // Less than one counts the next time.
    bucket.filled_at =
        bucket.used == 0
            ? at
            : bucket.filled_at + static_cast<std::uint32_t>(back * 1000 / limit.per_second);
  }
  if (bucket.used >= limit.burst) return false;
  ++bucket.used;
  return true;
}

void Allowances::add_work() noexcept {
  for (std::size_t i = 0; i < kAllowanceCount; ++i) {
    buckets_[i].used -= std::min(buckets_[i].used, kLimits[i].per_work * factor_);
  }
}

}  // namespace encore::h2

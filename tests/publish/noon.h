// The hour that the tests begin in.
#pragma once

#include "proxy/publish/hourly_filters.h"

namespace encore::publish {

inline constexpr Hour kNoon{490'000};
inline constexpr WallTime kStart = start_of(kNoon) + std::chrono::minutes(10);

}  // namespace encore::publish

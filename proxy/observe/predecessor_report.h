// A process that this one has replaced and that still has clients, for the pages. A value.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace encore::server {

struct PredecessorReport {
  std::int64_t process = 0;
  std::uint64_t connections = 0;
  std::uint64_t tunnels = 0;  // among these
  Nanoseconds replaced{};     // since when
};

}  // namespace encore::server

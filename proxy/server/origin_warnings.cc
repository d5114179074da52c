#include "proxy/server/origin_warnings.h"

#include <spdlog/spdlog.h>

namespace encore::server {

void OriginWarnings::tell(std::string_view origin, std::string_view why, MonotonicTime now) {
  if (last_ != MonotonicTime::min() && now - last_ < std::chrono::seconds(1)) {
    ++untold_;
    return;
  }
  if (untold_ == 0) {
    spdlog::warn("origin {}: {}", origin, why);
  } else {
    spdlog::warn("origin {}: {} ({} other failures were not told)", origin, why, untold_);
  }
  last_ = now;
  untold_ = 0;
}

}  // namespace encore::server

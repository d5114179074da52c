#include "proxy/origin/origin_warnings.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace encore::server {
namespace {

constexpr Nanoseconds kInterval = std::chrono::seconds(1);

}  // namespace

// Null where it is not to be told now.
OriginWarnings::Reason* OriginWarnings::find(std::string&& text, MonotonicTime now) {
  const auto known = std::ranges::find(reasons_, text, &Reason::text);
  if (known != reasons_.end()) {
    if (now - known->told >= kInterval) return &*known;
    ++known->untold;
    return nullptr;
  }
  if (reasons_.size() < kReasonsMax) {
    return &reasons_.emplace_back(Reason{.text = std::move(text)});
  }
  const auto oldest = std::ranges::min_element(reasons_, {}, &Reason::told);
  if (now - oldest->told < kInterval) {
    ++untold_;
    return nullptr;
  }
  untold_ += oldest->untold;
  *oldest = {.text = std::move(text)};
  return &*oldest;
}

std::string OriginWarnings::line(std::string_view origin, std::string_view why, MonotonicTime now) {
  Reason* reason = find(fmt::format("origin {}: {}", origin, why), now);
  if (reason == nullptr) return {};
  std::string more;
  if (reason->untold != 0) more = fmt::format(" ({} times more before)", reason->untold);
  if (untold_ != 0) more += fmt::format(" ({} other failures were not told)", untold_);
  reason->told = now;
  reason->untold = 0;
  untold_ = 0;
  return reason->text + more;
}

}  // namespace encore::server

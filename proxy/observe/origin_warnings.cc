#include "proxy/observe/origin_warnings.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "proxy/observe/log.h"

namespace encore::server {
namespace {

constexpr Nanoseconds kInterval = std::chrono::seconds(1);
// Limit of a name that a client chose, and of the text about it.
constexpr std::size_t kShownBytesMax = 512;

}  // namespace

// Returns null if it is not to be logged now.
OriginWarnings::Reason* OriginWarnings::find(std::string&& text, MonotonicTime now) {
  const auto known = std::ranges::find(reasons_, text, &Reason::text);
  if (known != reasons_.end()) {
    if (now - known->told >= kInterval) return &*known;
    ++known->untold;
    return nullptr;
  }
  if (reasons_.size() < reasons_max_) {
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

void OriginWarnings::tell(std::string_view origin, std::string_view why, MonotonicTime now) {
  const std::string text =
      line(origin.substr(0, kShownBytesMax), why.substr(0, kShownBytesMax), now);
  if (!text.empty()) log::warn("{}", text);
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

#include "proxy/observe/series.h"

namespace encore::server {

SeriesNames::SeriesNames(std::span<const std::string> names, std::size_t most,
                         const SeriesNames* before) {
  std::set<std::string_view> all;
  for (const std::string& name : names) {
    all.insert(name);
    const bool stays = before != nullptr && before->has(name);
    if (stays && own_.size() < most) own_.insert(name);
  }
  for (const std::string& name : names) {
    if (own_.size() < most && name != kOtherSeries) own_.insert(name);
  }
  clipped_ = all.size() - own_.size() - all.count(kOtherSeries);
  has_others_ = all.size() != own_.size();
}

}  // namespace encore::server

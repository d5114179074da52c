#include "proxy/settings/hot_keys.h"

#include <string_view>
#include <utility>

namespace encore::server {

bool HotKeys::count(std::uint64_t key) {
  if (requests_ == kWindow) {
    before_ = std::exchange(current_, {});
    requests_before_ = std::exchange(requests_, 0);
  }
  ++requests_;
  const std::string_view name(reinterpret_cast<const char*>(&key), sizeof(key));
  current_.add(name, 1);
  const std::uint64_t seen = current_.weight_at_least(name) + before_.weight_at_least(name);
  const std::uint64_t all = requests_ + requests_before_;
  return seen >= kRequestsMin && static_cast<double>(seen) >= share_ * static_cast<double>(all);
}

}  // namespace encore::server

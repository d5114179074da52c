#include "proxy/exchange/authorization_cache.h"

#include "base/check.h"

namespace encore::server {

filter::Hash128 AuthorizationCache::name(std::string_view access_text) const {
  return filter::hash_key(filter::HashFamily::kXxh3, seed_, access_text);
}

bool AuthorizationCache::is_allowed(const filter::Hash128& name, MonotonicTime now) const {
  const auto found = until_.find(name);
  return found != until_.end() && now < found->second;
}

void AuthorizationCache::allow(const filter::Hash128& name, MonotonicTime now) {
  const auto [place, fresh] = until_.insert_or_assign(name, now + kHolds);
  // It keeps its place in the order in which they go.
  if (!fresh) return;
  if (order_.size() < kMax) {
    order_.push_back(name);
    return;
  }
  const std::size_t erased = until_.erase(order_[next_]);
  ENCORE_CHECK(erased == 1, "each name that is kept has a turn to go");
  order_[next_] = name;
  next_ = (next_ + 1) % kMax;
}

}  // namespace encore::server

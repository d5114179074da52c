#include "proxy/client/client_counter.h"

#include "base/check.h"

namespace encore::server {

bool ClientCounter::enter(const net::Address& client, std::uint32_t limit) {
  const MutexLock lock(mutex_);
  std::uint32_t& count = counts_[client.network_bytes()];
  if (count >= limit) return false;
  ++count;
  return true;
}

void ClientCounter::leave(const net::Address& client) {
  const MutexLock lock(mutex_);
  const auto found = counts_.find(client.network_bytes());
  ENCORE_CHECK(found != counts_.end(), "a connection that leaves has been counted");
  if (--found->second == 0) counts_.erase(found);
}

}  // namespace encore::server

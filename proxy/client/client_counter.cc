#include "proxy/client/client_counter.h"

#include "base/check.h"

namespace encore::server {

ClientCounter::Shard& ClientCounter::shard_of(const Key& key) {
  std::size_t mixed = 0;
  for (const std::uint8_t byte : key) mixed = mixed * 31 + byte;
  return shards_[mixed % kShards];
}

bool ClientCounter::enter(const net::Address& client, std::uint32_t limit) {
  const Key key = client.network_bytes();
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  std::uint32_t& count = shard.counts[key];
  if (count >= limit) return false;
  ++count;
  return true;
}

void ClientCounter::leave(const net::Address& client) {
  const Key key = client.network_bytes();
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  const auto found = shard.counts.find(key);
  ENCORE_CHECK(found != shard.counts.end(), "who leaves has been counted");
  if (--found->second == 0) shard.counts.erase(found);
}

bool ClientCounter::Seat::take(ClientCounter& counter, const net::Address& client,
                               std::uint32_t limit) {
  ENCORE_CHECK(counter_ == nullptr, "a seat is taken once");
  if (!counter.enter(client, limit)) return false;
  counter_ = &counter;
  client_ = client;
  return true;
}

void ClientCounter::Seat::leave() {
  if (counter_ != nullptr) counter_->leave(client_);
  counter_ = nullptr;
}

}  // namespace encore::server

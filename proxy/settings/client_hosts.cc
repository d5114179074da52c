#include "proxy/settings/client_hosts.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace encore::server {

std::string ClientHosts::key_of(const Network& network, std::string_view host) {
  std::string key(network.begin(), network.end());
  key += host;
  return key;
}

void ClientHosts::drop(Order::iterator entry) {
  const auto count = counts_.find(entry->network);
  if (--count->second == 0) counts_.erase(count);
  places_.erase(key_of(entry->network, entry->host));
  order_.erase(entry);
}

void ClientHosts::drop_old(MonotonicTime now) {
  while (!order_.empty() && order_.front().until <= now) {
    Entry& oldest = order_.front();
    // It lasts as long as its connections do, and then from when something was asked on them.
    const MonotonicTime ends = oldest.last() + oldest.memory;
    if (oldest.connections == 0 && ends <= now) {
      drop(order_.begin());
      continue;
    }
    oldest.until = oldest.connections == 0
                       ? ends
                       : now + std::max<Nanoseconds>(oldest.memory, std::chrono::seconds(1));
    order_.splice(order_.end(), order_, order_.begin());
  }
}

ClientHosts::Entry* ClientHosts::find(const net::Address& client, std::string_view host) {
  const auto place = places_.find(key_of(client.network_bytes(), host));
  return place == places_.end() ? nullptr : &*place->second;
}

bool ClientHosts::note(const net::Address& client, std::string_view host, MonotonicTime now,
                       Nanoseconds memory) {
  const MutexLock lock(mutex_);
  return note_locked(client, host, now, memory);
}

bool ClientHosts::note_locked(const net::Address& client, std::string_view host, MonotonicTime now,
                              Nanoseconds memory) {
  const Network network = client.network_bytes();
  const std::string key = key_of(network, host);
  drop_old(now);
  if (const auto place = places_.find(key); place != places_.end()) {
    // By a reload times may be shorter than those of pairs in front, which leave before it then.
    place->second->noted = now;
    place->second->memory = memory;
    place->second->until = now + memory;
    order_.splice(order_.end(), order_, place->second);
    return false;
  }
  const auto count = counts_.find(network);
  if (count != counts_.end() && count->second >= per_client_) return false;
  if (order_.size() >= pairs_max_) drop(order_.begin());
  order_.push_back({.network = network,
                    .client = client.ip_string(),
                    .host = std::string(host),
                    .noted = now,
                    .memory = memory,
                    .until = now + memory});
  places_.emplace(key, std::prev(order_.end()));
  ++counts_[network];
  return true;
}

std::optional<MonotonicTime> ClientHosts::noted_at(const net::Address& client,
                                                   std::string_view host, MonotonicTime now) {
  const MutexLock lock(mutex_);
  const Entry* const entry = find(client, host);
  if (entry == nullptr) return std::nullopt;
  const MonotonicTime last = entry->last();
  if (std::max(entry->until, last + entry->memory) <= now) return std::nullopt;
  return last;
}

std::shared_ptr<ClientHosts::Latest> ClientHosts::open(const net::Address& client,
                                                       std::string_view host, MonotonicTime now,
                                                       Nanoseconds memory) {
  const MutexLock lock(mutex_);
  note_locked(client, host, now, memory);
  Entry* const entry = find(client, host);
  if (entry == nullptr) return nullptr;
  ++entry->connections;
  if (entry->latest == nullptr) entry->latest = std::make_shared<Latest>(now);
  return entry->latest;
}

void ClientHosts::close(const net::Address& client, std::string_view host) {
  const MutexLock lock(mutex_);
  Entry* const entry = find(client, host);
  // It may have left, and come again, meanwhile.
  if (entry != nullptr && entry->connections != 0) --entry->connections;
}

bool ClientHosts::is_open(const net::Address& client, std::string_view host) {
  const MutexLock lock(mutex_);
  const Entry* const entry = find(client, host);
  return entry != nullptr && entry->connections != 0;
}

std::size_t ClientHosts::size(MonotonicTime now) {
  const MutexLock lock(mutex_);
  drop_old(now);
  return order_.size();
}

std::vector<ClientHosts::Pair> ClientHosts::newest(std::size_t count, MonotonicTime now) {
  const MutexLock lock(mutex_);
  drop_old(now);
  std::vector<Pair> pairs;
  for (auto entry = order_.rbegin(); entry != order_.rend() && pairs.size() < count; ++entry) {
    pairs.push_back({.client = entry->client, .host = entry->host, .left = entry->until - now});
  }
  return pairs;
}

}  // namespace encore::server

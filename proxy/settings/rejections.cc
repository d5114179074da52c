#include "proxy/settings/rejections.h"

#include <algorithm>
#include <iterator>

namespace encore::server {

std::string Rejections::key_of(const Network& network, std::string_view host) {
  std::string key(network.begin(), network.end());
  key += host;
  return key;
}

void Rejections::drop(Order::iterator entry) {
  const auto count = counts_.find(entry->network);
  if (--count->second == 0) counts_.erase(count);
  places_.erase(key_of(entry->network, entry->host));
  order_.erase(entry);
}

// Those that are known for longer than others behind them keep these a while: they say nothing.
void Rejections::drop_old(MonotonicTime now) {
  while (!order_.empty() && order_.front().known_until <= now) drop(order_.begin());
}

Rejections::Entry* Rejections::find_or_make(const net::Address& client, std::string_view host) {
  const Network network = client.network_bytes();
  const std::string key = key_of(network, host);
  if (const auto place = places_.find(key); place != places_.end()) {
    order_.splice(order_.end(), order_, place->second);
    return &*place->second;
  }
  const auto count = counts_.find(network);
  if (count != counts_.end() && count->second >= per_client_) return nullptr;
  if (order_.size() >= pairs_max_) drop(order_.begin());
  order_.push_back({.network = network, .client = client.ip_string(), .host = std::string(host)});
  places_.emplace(key, std::prev(order_.end()));
  ++counts_[network];
  return &order_.back();
}

std::optional<Nanoseconds> Rejections::note(const net::Address& client, std::string_view host,
                                            MonotonicTime now, const Terms& terms) {
  const MutexLock lock(mutex_);
  drop_old(now);
  Entry* const entry = find_or_make(client, host);
  if (entry == nullptr) return std::nullopt;
  if (entry->known_until <= now) {
    // It was only kept behind others.
    entry->refusals = entry->counted = 0;
    entry->pause = {};
  }
  ++entry->refusals;
  // For a connection that had begun before.
  if (entry->paused_until > now) return std::nullopt;
  entry->known_until = now + terms.longest;
  const bool was_paused = entry->pause.count() != 0;
  if (!was_paused && ++entry->counted < terms.after) return std::nullopt;
  entry->pause = std::min(was_paused ? 2 * entry->pause : terms.first, terms.longest);
  entry->paused_until = now + entry->pause;
  entry->known_until = entry->paused_until + terms.longest;
  return entry->pause;
}

bool Rejections::is_paused(const net::Address& client, std::string_view host, MonotonicTime now) {
  const MutexLock lock(mutex_);
  const auto place = places_.find(key_of(client.network_bytes(), host));
  return place != places_.end() && place->second->paused_until > now;
}

std::size_t Rejections::paused(MonotonicTime now) {
  const MutexLock lock(mutex_);
  drop_old(now);
  return static_cast<std::size_t>(
      std::ranges::count_if(order_, [&](const Entry& entry) { return entry.paused_until > now; }));
}

std::vector<Rejections::Pair> Rejections::newest(std::size_t count, MonotonicTime now) {
  const MutexLock lock(mutex_);
  drop_old(now);
  std::vector<Pair> pairs;
  for (auto entry = order_.rbegin(); entry != order_.rend() && pairs.size() < count; ++entry) {
    if (entry->known_until <= now) continue;
    pairs.push_back({.client = entry->client,
                     .host = entry->host,
                     .refusals = entry->refusals,
                     .left = std::max(entry->paused_until - now, Nanoseconds(0))});
  }
  return pairs;
}

std::size_t Rejections::clear(const Which& which) {
  const MutexLock lock(mutex_);
  std::optional<Network> network;
  if (which.client) network = which.client->network_bytes();
  std::size_t cleared = 0;
  for (auto entry = order_.begin(); entry != order_.end();) {
    const auto next = std::next(entry);
    if ((!network || entry->network == *network) &&
        (which.host.empty() || entry->host == which.host)) {
      drop(entry);
      ++cleared;
    }
    entry = next;
  }
  return cleared;
}

}  // namespace encore::server

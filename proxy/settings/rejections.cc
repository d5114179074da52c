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
  ends_.erase(entry->end);
  order_.erase(entry);
}

// Otherwise they would take the place of others.
void Rejections::drop_old(MonotonicTime now) {
  while (!ends_.empty() && ends_.begin()->first <= now) drop(ends_.begin()->second);
}

void Rejections::know_until(Order::iterator entry, MonotonicTime end) {
  ends_.erase(entry->end);
  entry->end = ends_.emplace(end, entry);
}

std::optional<Rejections::Order::iterator> Rejections::find_or_make(const net::Address& client,
                                                                    std::string_view host) {
  const Network network = client.network_bytes();
  const std::string key = key_of(network, host);
  if (const auto place = places_.find(key); place != places_.end()) {
    order_.splice(order_.end(), order_, place->second);
    return place->second;
  }
  const auto count = counts_.find(network);
  if (count != counts_.end() && count->second >= per_client_) return std::nullopt;
  if (order_.size() >= pairs_max_) drop(order_.begin());
  order_.push_back({.network = network, .client = client.ip_string(), .host = std::string(host)});
  const auto made = std::prev(order_.end());
  made->end = ends_.emplace(MonotonicTime{}, made);
  places_.emplace(key, made);
  ++counts_[network];
  return made;
}

std::optional<Nanoseconds> Rejections::note(const net::Address& client, std::string_view host,
                                            MonotonicTime now, const Terms& terms) {
  const MutexLock lock(mutex_);
  drop_old(now);
  const auto found = find_or_make(client, host);
  if (!found) return std::nullopt;
  const Order::iterator entry = *found;
  ++entry->refusals;
  // For a connection that had begun before.
  if (entry->paused_until > now) return std::nullopt;
  know_until(entry, now + terms.longest);
  const bool was_paused = entry->pause.count() != 0;
  if (!was_paused && ++entry->counted < terms.after) return std::nullopt;
  entry->pause = std::min(was_paused ? 2 * entry->pause : terms.first, terms.longest);
  entry->paused_until = now + entry->pause;
  know_until(entry, entry->paused_until + terms.longest);
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

#include "proxy/intake/client_counter.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace encore::server {
namespace {

constexpr std::uint64_t kAllPercent = 100;

// The same bytes, port included: so it is with one connection's requests. Others that are alike are
// found by their networks.
bool is_the_very_same(const net::Address& a, const net::Address& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

// These counts publish nothing else, so that they need no order among others.
bool add_one(std::atomic<std::uint32_t>& count, std::uint32_t limit) {
  std::uint32_t now = count.load(std::memory_order_relaxed);
  do {
    if (now >= limit) return false;
  } while (!count.compare_exchange_weak(now, now + 1, std::memory_order_relaxed));
  return true;
}

}  // namespace

std::uint32_t client_limit(const config::ClientShare& share, std::uint32_t all) {
  if (share.connections != 0) return share.connections;
  if (share.percent >= kAllPercent) return 0;
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(std::uint64_t{all} * share.percent / kAllPercent, 1));
}

ClientCounter::~ClientCounter() {
  for (Shard& shard : shards_) {
    const MutexLock lock(shard.mutex);
    ENCORE_CHECK(shard.records.empty(), "whoever was counted has gone");
  }
}

ClientCounter::Shard& ClientCounter::shard_of(const Key& key) {
  std::size_t mixed = 0;
  for (const std::uint8_t byte : key) mixed = mixed * 31 + byte;
  return shards_[mixed % kShards];
}

ClientCounter::Record& ClientCounter::hold(const net::Address& client) {
  const Key key = client.network_bytes();
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  Record& record = shard.records[key];
  ++record.seats;
  return record;
}

void ClientCounter::let_go(const net::Address& client) {
  const Key key = client.network_bytes();
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  const auto found = shard.records.find(key);
  ENCORE_CHECK(found != shard.records.end(), "who is let go is known");
  if (--found->second.seats != 0) return;
  ENCORE_CHECK(found->second.count.load(std::memory_order_relaxed) == 0,
               "nobody is counted without a seat");
  shard.records.erase(found);
}

ClientCounter::Seat::Seat(Seat&& other) noexcept
    : counter_(other.counter_),
      record_(std::exchange(other.record_, nullptr)),
      client_(other.client_),
      taken_(std::exchange(other.taken_, false)) {}

ClientCounter::Seat& ClientCounter::Seat::operator=(Seat&& other) noexcept {
  if (this == &other) return *this;
  reset();
  counter_ = other.counter_;
  record_ = std::exchange(other.record_, nullptr);
  client_ = other.client_;
  taken_ = std::exchange(other.taken_, false);
  return *this;
}

bool ClientCounter::Seat::take(ClientCounter& counter, const net::Address& client,
                               std::uint32_t limit) {
  ENCORE_CHECK(!taken_ && (record_ == nullptr || counter_ == &counter), "a seat is taken once");
  if (record_ == nullptr || !is_the_very_same(client, client_)) {
    reset();
    counter_ = &counter;
    client_ = client;
    record_ = &counter.hold(client);
  }
  taken_ = add_one(record_->count, limit);
  return taken_;
}

void ClientCounter::Seat::leave() {
  if (!std::exchange(taken_, false)) return;
  const std::uint32_t before = record_->count.fetch_sub(1, std::memory_order_relaxed);
  ENCORE_CHECK(before != 0, "who leaves has been counted");
}

void ClientCounter::Seat::reset() {
  leave();
  if (std::exchange(record_, nullptr) != nullptr) counter_->let_go(client_);
}

}  // namespace encore::server

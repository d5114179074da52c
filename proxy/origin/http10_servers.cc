#include "proxy/origin/http10_servers.h"

namespace encore::server {
namespace {

std::uint32_t seconds_of(MonotonicTime time) {
  return static_cast<std::uint32_t>(
      std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count());
}

}  // namespace

std::uint64_t Http10Servers::hash_of(const Server& server) {
  return filter::hash_key(filter::HashFamily::kSiphash, server.seed, server.pool_key).lo;
}

void Http10Servers::note(const Server& server, http::Version version, MonotonicTime now) {
  const bool is_old = version == http::Version::kHttp10;
  // Mostly no server is old: then a response costs one load, and no hash.
  if (!is_old && !has_any_.load(std::memory_order_relaxed)) return;
  const std::uint64_t hash = hash_of(server);
  std::atomic<std::uint64_t>& slot = slots_[hash % kSlots];
  if (is_old) {
    has_any_.store(true, std::memory_order_relaxed);
    // Half of the hash names the server, the other half of the word is its end: one word, no lock.
    slot.store((hash >> 32U << 32U) | seconds_of(now + kMemory), std::memory_order_relaxed);
  } else if (slot.load(std::memory_order_relaxed) >> 32U == hash >> 32U) {
    slot.store(0, std::memory_order_relaxed);
  }
}

bool Http10Servers::is_old(const Server& server, MonotonicTime now) const {
  if (!has_any_.load(std::memory_order_relaxed)) return false;
  const std::uint64_t hash = hash_of(server);
  const std::uint64_t slot = slots_[hash % kSlots].load(std::memory_order_relaxed);
  return slot != 0 && slot >> 32U == hash >> 32U &&
         seconds_of(now) < static_cast<std::uint32_t>(slot);
}

}  // namespace encore::server

#include "proxy/process/memory_reclaim.h"

#include <algorithm>
#include <vector>

#include "proxy/client/client_connection.h"
#include "proxy/origin/fetch.h"

namespace encore::server {
namespace {

// Bytes that are made free at a time: space for the next reads of a dozen fetches.
constexpr std::uint64_t kRoomBytes = 1024 * 1024;
// Entries evicted in one turn: each is some microseconds, with the memory given back.
constexpr std::uint32_t kVictimsMax = 256;
// Between two tries of fetches that wait.
constexpr Nanoseconds kRetryInterval = std::chrono::milliseconds(20);
// Time between two checks of the readers. A shorter time would call a client slow that pauses for a
// round trip or two.
constexpr Nanoseconds kLookInterval = std::chrono::milliseconds(900);
// That a fetch waits where nobody is slow: all readers were looked at twice. Longer only where the
// looks come late, on a machine that is busy.
constexpr Nanoseconds kPatience = std::chrono::seconds(2);
constexpr Nanoseconds kPatienceMax = std::chrono::seconds(10);

}  // namespace

WorkerMemoryReclaim::WorkerMemoryReclaim(const Parts& parts)
    : parts_(parts), timer_(parts.loop, [this] { retry(); }) {
  parts_.slow_readers.add(*this);
}

WorkerMemoryReclaim::~WorkerMemoryReclaim() { parts_.slow_readers.remove(*this); }

bool WorkerMemoryReclaim::make_room() {
  const MonotonicTime now = parts_.loop.now();
  const bool cut = parts_.slow_readers.cut(SlowReaders::Scope::kOverShare, kRoomBytes, now);
  return !cut && evict(now);
}

bool WorkerMemoryReclaim::make_room_at_once() {
  const MonotonicTime now = parts_.loop.now();
  (void)parts_.slow_readers.cut(SlowReaders::Scope::kOverShare, kRoomBytes, now);
  return evict(now);
}

bool WorkerMemoryReclaim::evict(MonotonicTime now) {
  const cache::Kernel::Freed freed =
      parts_.kernel.make_room({.bytes = kRoomBytes, .victims_max = kVictimsMax}, now);
  parts_.stats.memory_evictions.add(freed.victims);
  return freed.bytes != 0;
}

void WorkerMemoryReclaim::wait_for_room() {
  if (!timer_.is_running()) timer_.start(kRetryInterval);
}

// The fetches that wait try again, each at another time the first; where one finds nothing, the
// others need not ask.
void WorkerMemoryReclaim::retry() {
  const auto fetches = parts_.worker.fetches();
  bool waiting = false;
  bool found = true;
  for (std::size_t i = 0; i < fetches.size(); ++i) {
    Fetch& fetch = *fetches[(turn_ + i) % fetches.size()];
    if (!fetch.waits_for_memory()) continue;
    if (found) found = fetch.retry_memory();
    waiting = waiting || !found;
  }
  ++turn_;
  if (!waiting) return;
  timer_.start(kRetryInterval);
  if (make_room()) return;
  if (parts_.slow_readers.cut(SlowReaders::Scope::kAll, kRoomBytes, parts_.loop.now())) return;
  have_one_give_way();
}

void WorkerMemoryReclaim::have_one_give_way() {
  Fetch* longest = nullptr;
  for (const auto& fetch : parts_.worker.fetches()) {
    if (!fetch->waits_for_memory()) continue;
    if (longest == nullptr || fetch->waits_for_memory_since() < longest->waits_for_memory_since()) {
      longest = fetch.get();
    }
  }
  if (longest == nullptr) return;
  const MonotonicTime since = longest->waits_for_memory_since();
  const Nanoseconds waited = parts_.loop.now() - since;
  const bool all_known = parts_.slow_readers.have_looked_twice_since(since);
  if (waited >= (all_known ? kPatience : kPatienceMax)) longest->give_way();
}

void WorkerMemoryReclaim::look(MonotonicTime now) {
  if (now - looked_ < kLookInterval) return;
  looked_ = now;
  for (ClientConnection* connection = parts_.worker.connections(); connection != nullptr;) {
    ClientConnection* following = connection->next;  // the look may retire this one
    connection->check_read_rate(now);
    connection = following;
  }
  parts_.slow_readers.publish(*this, slowest(), now);
}

SlowReaders::Slowest WorkerMemoryReclaim::slowest() const {
  SlowReaders::Slowest slowest;
  for (const ClientConnection* connection = parts_.worker.connections(); connection != nullptr;
       connection = connection->next) {
    const auto reader = connection->slow_reader();
    if (!reader) continue;
    slowest.all = std::min(slowest.all, reader->bytes_per_second);
    if (!reader->over_share) continue;
    slowest.over_share = std::min(slowest.over_share, reader->bytes_per_second);
  }
  return slowest;
}

void WorkerMemoryReclaim::cut_later(SlowReaders::Scope scope, std::uint64_t bytes) {
  parts_.loop.post([this, scope, bytes] { cut(scope, bytes); });
}

// Cuts the worker's slowest readers until `bytes` are free.
void WorkerMemoryReclaim::cut(SlowReaders::Scope scope, std::uint64_t bytes) {
  struct Candidate {
    SlowReader reader;
    ClientConnection* connection;
  };
  std::vector<Candidate> candidates;
  for (ClientConnection* connection = parts_.worker.connections(); connection != nullptr;
       connection = connection->next) {
    const auto reader = connection->slow_reader();
    if (!reader || (scope == SlowReaders::Scope::kOverShare && !reader->over_share)) continue;
    candidates.push_back({*reader, connection});
  }
  // The first of two that take nothing is the one that holds more.
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    if (a.reader.bytes_per_second != b.reader.bytes_per_second) {
      return a.reader.bytes_per_second < b.reader.bytes_per_second;
    }
    return a.reader.held_bytes > b.reader.held_bytes;
  });
  std::uint64_t freed = 0;
  for (const Candidate& candidate : candidates) {
    if (freed >= bytes) break;
    freed += candidate.reader.held_bytes;
    candidate.connection->cut_reader();
  }
  // In a later turn: the memory comes free at the end of this one.
  parts_.loop.post([this] { parts_.slow_readers.publish_done(*this, slowest()); });
}

}  // namespace encore::server

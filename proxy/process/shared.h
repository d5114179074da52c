// Shared: what all workers of the process share. Made by Server before the workers start, gone
// after they have ended. Its parts are thread-safe each for itself.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cache/kernel.h"
#include "config/config.h"
#include "filter/hash.h"
#include "proxy/disk/disks.h"
#include "proxy/exchange/coding_memory.h"
#include "proxy/exchange/recent_outcomes.h"
#include "proxy/intake/client_counter.h"
#include "proxy/intake/password_checks.h"
#include "proxy/observe/carried_counts.h"
#include "proxy/observe/error_counts.h"
#include "proxy/observe/log_writer.h"
#include "proxy/observe/request_tap.h"
#include "proxy/observe/shadow_caches.h"
#include "proxy/observe/stats.h"
#include "proxy/origin/http10_servers.h"
#include "proxy/process/slow_readers.h"
#include "proxy/publish/changed_keys.h"
#include "proxy/publish/resources.h"
#include "proxy/settings/purge_order.h"
#include "proxy/store/store.h"
#include "proxy/transfer/inflight.h"
#include "proxy/transfer/lamport_clock.h"
#include "proxy/transfer/transfer_memory.h"

namespace encore::server {

class Worker;

struct Shared {
  // Published data of the cache, which it outlives, and all that is published; null: nothing.
  std::unique_ptr<publish::ChangedKeys> changed;
  std::unique_ptr<publish::ResidentKeys> resident;
  std::unique_ptr<publish::Resources> published;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<cache::Kernel> kernel;
  std::unique_ptr<disk::Disks> disks;  // null: there is no disk tier
  filter::Seed identity_seed;
  Inflight inflight;
  // Latest times at which a stored and shared object came, or was made stale.
  LamportClock latest_moment;
  Http10Servers old_servers;
  std::unique_ptr<LogWriter> access_log;  // null: none
  RecentOutcomes recent;
  ErrorNames errors;
  ShadowCaches shadows;
  RequestTap tap;
  std::vector<std::unique_ptr<WorkerStats>> stats;
  CarriedCounts carried;  // counters of the processes that this one has replaced
  std::atomic<std::uint32_t> connections = 0;  // those of clients, over all workers
  // Descriptors for clients and origins. Set before the workers start.
  std::uint64_t descriptors = UINT64_MAX;
  ClientCounter clients;     // connections of each
  ClientCounter transfers;   // requests in progress
  ClientCounter handshakes;  // TLS
  PasswordChecks passwords;
  TransferMemory transfer_memory;
  CodingMemory coding_memory;
  SlowReaders slow_readers;
  std::atomic<bool> draining = false;
  // Purges by the jobs' thread, and tells there, or on the main one. Any thread; set before the
  // workers start.
  std::function<void(PurgeOrder order, std::function<void(const PurgeResult&)> done)> purge;
  // All of them, borrowed. Set before they start.
  std::vector<Worker*> workers;

  // As many connections of clients as there are descriptors for, with one to an origin for each.
  std::uint32_t connections_max() const {
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(descriptors / 2, 1, UINT32_MAX));
  }
  std::uint32_t connections_allowed(const config::Limits& limits) const {
    return std::min(limits.connections, connections_max());
  }
  // How many idle connections a worker may keep now: those that the clients who are here leave
  // free, with one to an origin for each.
  std::size_t idle_connections_max() const {
    const std::uint64_t busy = 2 * std::uint64_t{connections.load(std::memory_order_relaxed)};
    return busy >= descriptors ? 0 : (descriptors - busy) / std::max<std::size_t>(stats.size(), 1);
  }
};

}  // namespace encore::server

// OriginServices: all that a fetch needs of the worker it runs on and of the process, each by its
// narrowest name. The worker makes one; a test makes another. Borrowed throughout; confined to the
// worker but for what is thread-safe by itself.
#pragma once

#include <cstddef>
#include <memory>

#include "cache/kernel.h"
#include "filter/hash.h"
#include "proxy/net/loop.h"
#include "proxy/net/resolver.h"
#include "proxy/observe/origin_warnings.h"
#include "proxy/observe/stats.h"
#include "proxy/origin/http10_servers.h"
#include "proxy/origin/origin_pool.h"
#include "proxy/origin/origin_queues.h"
#include "proxy/request/request_context.h"
#include "proxy/request/request_view.h"
#include "proxy/settings/runtime.h"
#include "proxy/store/store.h"
#include "proxy/transfer/inflight.h"
#include "proxy/transfer/lamport_clock.h"

namespace encore::publish {
class ChangedKeys;
class ResidentKeys;
}  // namespace encore::publish

namespace encore::disk {
class Disks;
}  // namespace encore::disk

namespace encore::server {

class Fetch;

// Owner of the fetches: they live by themselves, beyond those who asked.
class FetchKeeper {
 public:
  virtual void keep(std::unique_ptr<Fetch> fetch) = 0;
  // It has ended: it is destroyed in this turn, but not within this call. REQUIRES: kept, not
  // retired before.
  virtual void retire(Fetch& fetch) = 0;

 protected:
  ~FetchKeeper() = default;
};

// Actions if there is no memory for a body on its way.
class MemoryReclaim {
 public:
  // Evicts, or has readers beyond their share cut. True if it is worth trying again now.
  virtual bool make_room() = 0;
  // For who cannot wait for those readers: evicts as well.
  virtual bool make_room_at_once() = 0;
  // A fetch waits for memory: it is asked to try again (Fetch::retry_memory) until it ends.
  virtual void wait_for_room() = 0;

 protected:
  ~MemoryReclaim() = default;
};

// State of the worker that a fetch asks for, as it is at that moment.
class WorkerNow {
 public:
  // The settings of requests that come now.
  virtual const Runtime& present_runtime() const = 0;
  virtual bool is_draining() const = 0;
  // True if anybody reads which address has answered.
  virtual bool logs_requests() const = 0;
  // How many idle connections it may keep.
  virtual std::size_t idle_connections_max() const = 0;
  // Descriptors are short: closes idle connections of clients; false where none is idle.
  virtual bool give_up_idle() = 0;
  // Looks the request up in the cache.
  virtual CacheView lookup(const RequestContext& request) = 0;

 protected:
  ~WorkerNow() = default;
};

struct OriginServices {
  net::Loop& loop;
  net::Resolver& resolver;
  OriginPool& pool;
  OriginQueues& lines;
  OriginWarnings& warnings;
  OriginWarnings& forward_warnings;  // for origins that clients name
  store::Store& store;
  cache::Kernel& kernel;
  Inflight& inflight;
  LamportClock& latest_moment;
  Http10Servers& old_servers;
  WorkerStats& stats;
  const filter::Seed& identity_seed;
  FetchKeeper& keeper;
  MemoryReclaim& relief;
  WorkerNow& worker;
  publish::ChangedKeys* changed = nullptr;    // null: nobody wants to know what changes
  publish::ResidentKeys* resident = nullptr;  // null: nor stored objects
  disk::Disks* disks = nullptr;               // null: there is no disk tier
};

}  // namespace encore::server

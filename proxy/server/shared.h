// Shared: what all workers of the process share. Made by Server before the workers start, gone
// after they have ended. Its parts are thread-safe each for itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/kernel.h"
#include "filter/hash.h"
#include "proxy/server/client_counter.h"
#include "proxy/server/inflight.h"
#include "proxy/server/log_writer.h"
#include "proxy/server/stats.h"
#include "proxy/store/store.h"

namespace encore::server {

struct Shared {
  std::unique_ptr<store::Store> store;
  std::unique_ptr<cache::Kernel> kernel;
  filter::Seed identity_seed;
  Inflight inflight;
  std::unique_ptr<LogWriter> access_log;  // null: none
  std::vector<std::unique_ptr<WorkerStats>> stats;
  std::atomic<std::uint32_t> connections = 0;  // of clients, over all workers
  // As many connections of clients as the process has descriptors for, with one to an origin for
  // each. Set before the workers start.
  std::uint32_t connections_max = UINT32_MAX;
  ClientCounter clients;
  std::atomic<bool> draining = false;
};

}  // namespace encore::server

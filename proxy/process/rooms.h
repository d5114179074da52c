// Rooms: what the rooms of clients and exchanges use of their worker, put together. Confined to the
// worker.
#pragma once

#include "proxy/client/http1_connection.h"
#include "proxy/client/tunnel_exchange.h"
#include "proxy/exchange/cache_lookup.h"
#include "proxy/exchange/disk_loads.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/rechecks.h"
#include "proxy/request/view_maker.h"

namespace encore::server {

// What they are made from. All is borrowed.
struct RoomParts {
  net::Loop& loop;
  net::Retired& retired;
  net::Resolver& resolver;
  const std::shared_ptr<const Runtime>& runtime;  // the present one
  const std::unique_ptr<cache::Kernel>& kernel;
  const LatestMoment& latest_moment;
  const filter::Seed& identity_seed;
  Inflight& inflight;
  TransferMemory& transfer_memory;
  CodingMemory& coding_memory;
  ClientCounter& clients;
  ClientCounter& transfers;
  ClientCounter& handshakes;
  PasswordChecks& passwords;
  TransferHome& home;
  WorkerStats& stats;
  RequestLog& log;
  OriginAsker& origins;
  ConnectionKeeper& keeper;
  Doing& doing;
  OriginWarnings& forward_warnings;
  publish::Resources* published;  // null: nothing is
  const std::unique_ptr<store::Store>& store;
  const std::unique_ptr<disk::Disks>& disks;
  publish::ResidentKeys* resident;  // null: nobody wants to know what is stored
  Purger* purger = nullptr;         // null: nothing is purged
};

struct Rooms {
  explicit Rooms(const RoomParts& parts)
      : cache(parts.loop, parts.kernel, parts.latest_moment, parts.runtime),
        loads({.loop = parts.loop,
               .disks = parts.disks,
               .store = parts.store,
               .kernel = parts.kernel,
               .inflight = parts.inflight,
               .resident = parts.resident}),
        rechecks(parts.identity_seed),
        coders({.loop = parts.loop,
                .store = parts.store,
                .kernel = parts.kernel,
                .stats = parts.stats,
                .memory = parts.coding_memory}),
        views(parts.runtime, parts.identity_seed, parts.doing),
        exchange{.loop = parts.loop,
                 .kernel = parts.kernel,
                 .inflight = parts.inflight,
                 .stats = parts.stats,
                 .cache = cache,
                 .log = parts.log,
                 .home = parts.home,
                 .origins = parts.origins,
                 .loads = loads,
                 .rechecks = rechecks,
                 .published = parts.published,
                 .purger = parts.purger,
                 .coders = &coders},
        tunnel{.loop = parts.loop,
               .resolver = parts.resolver,
               .stats = parts.stats,
               .log = parts.log,
               .warnings = parts.forward_warnings},
        intercept{.loop = parts.loop,
                  .stats = parts.stats,
                  .log = parts.log,
                  .handshakes = parts.handshakes},
        client{.loop = parts.loop,
               .retired = parts.retired,
               .runtime = parts.runtime,
               .stats = parts.stats,
               .transfer_memory = parts.transfer_memory,
               .clients = parts.clients,
               .transfers = parts.transfers,
               .handshakes = parts.handshakes,
               .passwords = parts.passwords,
               .keeper = parts.keeper,
               .cache = cache,
               .log = parts.log,
               .views = views,
               .ids = ids,
               .http1 = http1,
               .exchange = exchange,
               .tunnel = tunnel,
               .intercept = intercept} {}
  Rooms(const Rooms&) = delete;
  Rooms& operator=(const Rooms&) = delete;

  CacheLookup cache;
  DiskLoads loads;
  Rechecks rechecks;
  Coders coders;
  ViewMaker views;
  RequestIds ids;
  Http1Scratch http1;
  ExchangeServices exchange;
  TunnelServices tunnel;
  InterceptServices intercept;
  ClientServices client;
};

}  // namespace encore::server

// RequestServices: the services of a worker for its clients and exchanges. Confined to the worker.
#pragma once

#include "proxy/client/http1_connection.h"
#include "proxy/client/tunnel_exchange.h"
#include "proxy/exchange/authorization_cache.h"
#include "proxy/exchange/cache_lookup.h"
#include "proxy/exchange/disk_loads.h"
#include "proxy/exchange/exchange.h"
#include "proxy/intake/intake.h"

namespace encore::server {

// Parts that they are made from. All is borrowed.
struct RequestServicesParts {
  net::Loop& loop;
  net::DeferredDeleter& retired;
  net::Resolver& resolver;
  const std::shared_ptr<const Runtime>& runtime;  // the present one
  const std::unique_ptr<cache::Kernel>& kernel;
  const LamportClock& latest_moment;
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
  OriginFetcher& origins;
  ConnectionKeeper& keeper;
  ThreadActivity& activity;
  OriginWarnings& forward_warnings;
  publish::Resources* published;  // null: nothing is
  const std::unique_ptr<store::Store>& store;
  const std::unique_ptr<disk::Disks>& disks;
  publish::ResidentKeys* resident;  // null: nobody wants to know the stored objects
  Purger* purger = nullptr;         // null: nothing is purged
};

struct RequestServices {
  explicit RequestServices(const RequestServicesParts& parts)
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
        intake({.loop = parts.loop,
                .runtime = parts.runtime,
                .identity_seed = parts.identity_seed,
                .activity = parts.activity,
                .stats = parts.stats,
                .log = parts.log,
                .cache = cache,
                .coders = coders,
                .inflight = parts.inflight,
                .passwords = parts.passwords,
                .transfers = parts.transfers,
                .allowed = parts.keeper}),
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
               .handshakes = parts.handshakes,
               .keeper = parts.keeper,
               .log = parts.log,
               .intake = intake,
               .http1 = http1,
               .http2 = http2,
               .exchange = exchange,
               .tunnel = tunnel,
               .intercept = intercept} {}
  RequestServices(const RequestServices&) = delete;
  RequestServices& operator=(const RequestServices&) = delete;

  CacheLookup cache;
  DiskLoads loads;
  AuthorizationCache rechecks;
  Coders coders;
  Intake intake;
  Http1Scratch http1;
  h2::Counters http2;
  ExchangeServices exchange;
  TunnelServices tunnel;
  InterceptServices intercept;
  ClientServices client;
};

}  // namespace encore::server

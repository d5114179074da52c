// The parts of a worker that connections of clients use.
#pragma once

#include <memory>
#include <vector>

#include "proxy/client/client_connection.h"
#include "proxy/client/gathered_hits.h"
#include "proxy/client/interceptor.h"
#include "proxy/client/reply_batch.h"
#include "proxy/client/tunnel_exchange.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/request_log.h"
#include "proxy/h2/options.h"
#include "proxy/http/message.h"
#include "proxy/intake/client_counter.h"
#include "proxy/intake/intake.h"
#include "proxy/net/deferred_deleter.h"
#include "proxy/net/loop.h"
#include "proxy/observe/stats.h"
#include "proxy/settings/runtime.h"
#include "proxy/transfer/transfer_memory.h"

namespace encore::server {

// Used by one connection after the other.
struct Http1Scratch {
  Http1Scratch() { head.fields.reserve(64); }
  http::RequestHead head;
  ReplyBatch batch;
  std::vector<GatheredHit> gathered;  // hits of the batch, but for one that goes alone
};

// All are borrowed and outlive them.
struct ClientServices {
  net::Loop& loop;
  net::DeferredDeleter& retired;
  const std::shared_ptr<const Runtime>& runtime;  // the present one
  WorkerStats& stats;
  TransferMemory& transfer_memory;
  ClientCounter& clients;     // connections of each
  ClientCounter& handshakes;  // TLS
  ConnectionKeeper& keeper;
  RequestLog& log;
  Intake& intake;
  Http1Scratch& http1;
  h2::Counters& http2;  // for all sessions
  const ExchangeServices& exchange;
  const TunnelServices& tunnel;
  const InterceptServices& intercept;
};

}  // namespace encore::server

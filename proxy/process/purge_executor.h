// PurgeExecutor: takes the purges of a worker's clients and returns their results. Confined to the
// worker.
#pragma once

#include <memory>

#include "proxy/exchange/purge_request.h"
#include "proxy/net/loop.h"

namespace encore::server {

struct Shared;

class PurgeExecutor final : public Purger {
 public:
  // Both are borrowed; `loop` is the worker's, which outlives all purges.
  PurgeExecutor(Shared& shared, net::Loop& loop) : shared_(shared), loop_(loop) {}

  void purge(std::shared_ptr<Transfer> transfer, PurgeRequest purge) override;

 private:
  Shared& shared_;
  net::Loop& loop_;
};

}  // namespace encore::server

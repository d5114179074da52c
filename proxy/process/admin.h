// The admin pages: the live page at / and what it asks for, /healthz, /readyz, /metrics,
// /api/stats, /api/explain, /api/intercept, what is published below /filters, POST /purge and
// /intercept/clear, and for who has the token GET /filter and POST /filter/adopt. Confined to the
// main thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "config/config.h"
#include "proxy/admin/admin_server.h"
#include "proxy/observe/pages.h"
#include "proxy/process/explain.h"
#include "proxy/process/handover.h"
#include "proxy/process/live_watch.h"
#include "proxy/process/purge.h"
#include "proxy/publish/resources.h"
#include "proxy/settings/rejections.h"

namespace encore::server {

// The process that the pages speak of.
class Administered {
 public:
  virtual const config::Config& config() const = 0;
  virtual bool is_ready() const = 0;
  virtual Snapshot snapshot() const = 0;
  virtual ProcessStatus status() const = 0;
  virtual const LiveSource& live() const = 0;
  // Null where nothing is published.
  virtual publish::Resources* published() const = 0;
  // Purges and calls `done` later, with how many there were. False where too many orders wait, or
  // the end is near: then `done` is not called.
  virtual bool purge(PurgeOrder order, std::move_only_function<void(const Purged&)> done) = 0;
  virtual MemoryHandover& memory() = 0;
  // Forgets clients that refused an interception: Proxy::clear_rejections().
  virtual std::size_t clear_rejections(const Rejections::Which& which) = 0;
  // Changes nothing. Errors: those of explain().
  virtual Result<Explanation> explain(const Explained& request) const = 0;

 protected:
  ~Administered() = default;
};

// Answers one request, a purge when it is done. Refuses with 403 a client that is none of
// allow_clients, a Host that is not ours (a page of another site must not reach us through a name
// of its own), and any request but GET and HEAD that a page of another origin sends.
//
// /healthz and /readyz tell nothing else and answer to everybody, by any Host: monitors of many
// machines rarely know their names.
void answer_admin(Administered& process, AdminRequest request, AdminReply to);

// Returns the largest body of a request with this head: a memory with the token, nothing where one
// is asked for or given otherwise, else `usual` bytes.
std::size_t admin_body_max(Administered& process, const AdminRequest& head, std::size_t usual);

}  // namespace encore::server

// ProcessControl: the process as the admin listener sees it. Confined to the main thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>

#include "config/config.h"
#include "proxy/observe/pages.h"
#include "proxy/process/explain.h"
#include "proxy/process/handover.h"
#include "proxy/process/live_observer.h"
#include "proxy/process/purge.h"
#include "proxy/process/request_followers.h"
#include "proxy/publish/resources.h"
#include "proxy/settings/rejections.h"

namespace encore::server {

// The process that the pages speak of.
class ProcessControl {
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
  virtual bool purge(PurgeOrder order, std::move_only_function<void(const PurgeResult&)> done) = 0;
  virtual MemoryHandover& memory() = 0;
  // Forgets clients that refused an interception: Proxy::clear_rejections().
  virtual std::size_t clear_rejections(const Rejections::Which& which) = 0;
  // Changes nothing. Errors: those of explain().
  virtual Result<Explanation> explain(const Explained& request) const = 0;
  // Reads the configuration again and calls `done` when it is in force, or with the reason why
  // nothing has changed: ": ...".
  virtual void reload(std::move_only_function<void(const Result<void>&)> done) = 0;
  // Replaces this process by a new one. Calls `done` later with its process id, or with the reason
  // why this one continues.
  virtual void upgrade(std::move_only_function<void(const Result<pid_t>&)> done) = 0;
  // Ends the process in order, as SIGTERM does. Again: nothing.
  virtual void drain() = 0;
  virtual RequestFollowers& followers() = 0;

 protected:
  ~ProcessControl() = default;
};

}  // namespace encore::server

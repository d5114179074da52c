// WorkerMemoryReclaim: the actions of a worker if there is no memory for a body on its way. The
// order is this: slow readers of clients that hold more than their share are cut; stored responses
// are evicted; of all readers the slowest are cut. Until there is space the fetch waits, and its
// origin with it. If nobody is slow, those that wait hold what they wait for: the one that has
// waited for longest gives way, if it has for some seconds.
//
// It also checks the worker's readers about once a second: how fast they take what they are sent,
// and what they hold. Confined to its worker. Why in this order: docs/decisions/0080.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/time.h"
#include "cache/kernel.h"
#include "proxy/net/loop.h"
#include "proxy/net/timer.h"
#include "proxy/observe/stats.h"
#include "proxy/origin/services.h"
#include "proxy/process/slow_readers.h"

namespace encore::server {

class ClientConnection;
class Fetch;

// Owner of the memory: the connections and the fetches of one worker.
class ReclaimableMemory {
 public:
  // The first of the list.
  virtual ClientConnection* connections() const = 0;
  virtual std::span<const std::unique_ptr<Fetch>> fetches() const = 0;

 protected:
  ~ReclaimableMemory() = default;
};

class WorkerMemoryReclaim final : public MemoryReclaim, private SlowReaders::Cutter {
 public:
  // All is borrowed.
  struct Parts {
    net::Loop& loop;
    cache::Kernel& kernel;
    SlowReaders& slow_readers;
    WorkerStats& stats;
    ReclaimableMemory& worker;
  };

  explicit WorkerMemoryReclaim(const Parts& parts);
  ~WorkerMemoryReclaim();
  WorkerMemoryReclaim(const WorkerMemoryReclaim&) = delete;
  WorkerMemoryReclaim& operator=(const WorkerMemoryReclaim&) = delete;

  // MemoryReclaim
  bool make_room() override;
  bool make_room_at_once() override;
  void wait_for_room() override;

  // For the worker's sweep: checks the readers, cuts those that take less than they must.
  void look(MonotonicTime now);

 private:
  // SlowReaders::Cutter
  void cut_later(SlowReaders::Scope scope, std::uint64_t bytes) override;

  void cut(SlowReaders::Scope scope, std::uint64_t bytes);
  bool evict(MonotonicTime now);
  void retry();
  void have_one_give_way();
  SlowReaders::Slowest slowest() const;

  const Parts parts_;
  MonotonicTime looked_{};
  std::size_t turn_ = 0;  // which of the waiting fetches is first
  net::Timer timer_;
};

}  // namespace encore::server

// Relief: what a worker does where there is no memory for a body on its way. The order is this:
// slow readers of clients that hold more than their share are cut; stored responses are evicted;
// of all readers the slowest are cut. Until there is room the fetch waits, and its origin with it;
// it fails only where nothing of this helps for long.
//
// It also looks at the worker's readers about once a second: how fast they take what they are
// sent, and what they hold. Confined to its worker.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "proxy/net/timer.h"
#include "proxy/server/slow_readers.h"

namespace encore::server {

class Worker;

// A reader that is behind, as the last look found it.
struct SlowReader {
  std::uint64_t bytes_per_second = 0;
  std::uint64_t held_bytes = 0;
  bool over_share = false;  // its client holds more than its share
};

class Relief {
 public:
  explicit Relief(Worker& worker);
  ~Relief();
  Relief(const Relief&) = delete;
  Relief& operator=(const Relief&) = delete;

  // Evicts, or has readers beyond their share cut. Whether it is worth trying again at once.
  bool make_room();
  // For who cannot wait for those readers: evicts as well.
  bool make_room_at_once();
  // A fetch waits for memory: it is asked to try again (Fetch::retry_memory) until it ends.
  void wait();

  // For the worker's sweep: looks at the readers, cuts those that take less than they must.
  void look(MonotonicTime now);
  // Cuts the worker's slowest readers until `bytes` are free.
  void cut(SlowReaders::Scope scope, std::uint64_t bytes);

 private:
  bool evict(MonotonicTime now);
  void retry();
  SlowReaders::Slowest slowest() const;

  Worker& worker_;
  MonotonicTime looked_{};
  std::size_t turn_ = 0;  // which of the waiting fetches is first
  net::Timer timer_;
};

}  // namespace encore::server

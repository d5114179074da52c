// Connections to origins that wait for their next request. One pool a worker, confined to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/time.h"
#include "proxy/net/stream.h"
#include "proxy/origin/connection_count.h"
#include "proxy/origin/origin_http2_pool.h"
#include "proxy/origin/origin_queues.h"

namespace encore::server {

// A connection to an origin, with what it takes of its server's number.
struct PooledConnection {
  std::unique_ptr<net::Stream> stream;
  OriginQueues::Slot slot;
  ConnectionCount count;
  MonotonicTime made{};         // when it was connected
  MonotonicTime named_until{};  // until then its host's name has its address
};

class OriginPool {
 public:
  OriginPool();
  OriginPool(const OriginPool&) = delete;
  OriginPool& operator=(const OriginPool&) = delete;
  ~OriginPool();

  // The most recently used idle connection for which `accept` answers true; no stream: none.
  PooledConnection take(std::string_view key,
                        const std::function<bool(const PooledConnection&)>& accept);
  struct Limits {
    std::size_t per_server = 0;
    std::size_t in_all = SIZE_MAX;
  };
  // Keeps a connection, idle and in step, for the next request; beyond a limit the oldest of its
  // key is closed. A connection that its origin ends is dropped immediately.
  void put(const std::string& key, PooledConnection connection, const Limits& limits);
  // Closes the oldest of a key, to make room for one that is needed; false: there is none.
  bool give_up(std::string_view key);
  // Closes what has been idle since before `time`.
  void close_idle_since(MonotonicTime time);
  // Closes what was connected before `time`.
  void close_made_before(MonotonicTime time);
  // Closes connections of any key until at most `count` are left.
  void close_beyond(std::size_t count);
  void close_all();
  // For a sweep: what takes too long on connections of HTTP/2.
  void check_timeouts(MonotonicTime now) { http2_.check_timeouts(now); }
  // Idle connections.
  std::size_t size() const { return size_ + http2_.idle_count(); }
  // Those of HTTP/2, which share the limits above.
  OriginHttp2Pool& http2() { return http2_; }

 private:
  class Idle;
  struct TransparentHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  using List = std::list<std::unique_ptr<Idle>>;  // most recent first
  List* find(std::string_view key);
  void drop(Idle& idle);

  std::size_t size_ = 0;  // over HTTP/1
  OriginHttp2Pool http2_;
  std::unordered_map<std::string, List, TransparentHash, std::equal_to<>> lists_;
  // The list that was used last: most workers have one origin that matters.
  const std::string* last_key_ = nullptr;
  List* last_list_ = nullptr;
  List spare_;  // watchers without a connection, for the next ones
};

}  // namespace encore::server

// OriginHttp2Pool: the connections of HTTP/2 to origins, each with or without requests in progress.
// One a worker, confined to it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "proxy/h2/options.h"
#include "proxy/origin/origin_http2_connection.h"
#include "proxy/origin/origin_queues.h"

namespace encore::server {

class OriginHttp2Pool final : private OriginHttp2Keeper {
  struct Server;

 public:
  // A connection is being made: others wait for it instead of making more. Their turn comes when it
  // ends. Ends before its pool.
  class Attempt {
   public:
    Attempt() = default;
    Attempt(Attempt&& other) noexcept
        : server_(std::exchange(other.server_, nullptr)), lines_(other.lines_) {}
    Attempt& operator=(Attempt&& other) noexcept;
    ~Attempt() { end(); }
    void end() {
      if (server_ != nullptr) finish();
    }

   private:
    friend class OriginHttp2Pool;
    Attempt(Server& server, OriginQueues& lines);
    void finish();
    Server* server_ = nullptr;
    OriginQueues* lines_ = nullptr;
  };

  OriginHttp2Pool() = default;
  OriginHttp2Pool(const OriginHttp2Pool&) = delete;
  OriginHttp2Pool& operator=(const OriginHttp2Pool&) = delete;
  // REQUIRES: no stream is left.
  ~OriginHttp2Pool();

  // The oldest connection with room for which `accept` answers true; null: none.
  OriginHttp2Connection* find(std::string_view key,
                              const std::function<bool(const OriginHttp2Connection&)>& accept);
  // Keeps a connection that was made. `stats` is borrowed and outlives the pool.
  OriginHttp2Connection& add(const std::string& key, OriginHttp2Connection::Parts parts,
                             const h2::Options& options, WorkerStats& stats);
  // `lines` is borrowed.
  Attempt begin_attempt(const std::string& key, OriginQueues& lines);
  bool has_attempt(std::string_view key) const;
  // The server has chosen HTTP/1.1, or HTTP/2, when it was connected to last.
  void note_http1(const std::string& key, bool is_http1);
  bool is_http1(std::string_view key) const;

  // --- as those of OriginPool; connections with requests end with the last of these ---
  bool give_up(std::string_view key);
  void close_idle_since(MonotonicTime time);
  void close_made_before(MonotonicTime time);
  void close_beyond(std::size_t count);
  void close_all();
  // Connections without requests.
  std::size_t idle_count() const;
  // For a sweep.
  void check_timeouts(MonotonicTime now);

 private:
  struct Server {
    std::string_view key;
    std::vector<std::unique_ptr<OriginHttp2Connection>> connections;  // the oldest first
    std::size_t attempts = 0;
    bool is_http1 = false;
  };
  // OriginHttp2Keeper
  void on_end(OriginHttp2Connection& connection) override;

  Server& server_of(const std::string& key);
  const Server* find_server(std::string_view key) const;
  template <typename Call>
  void for_each(Call call);

  std::map<std::string, Server, std::less<>> servers_;
  h2::Counters counters_;
};

}  // namespace encore::server

// ClientConnection: one connection of a client. It parses requests, answers fresh hits on the
// spot, and gives everything that takes longer to an Exchange (one at a time, so that replies
// keep the order of requests). Confined to its worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/time.h"
#include "proxy/http/parser.h"
#include "proxy/net/stream.h"
#include "proxy/server/outcome.h"
#include "proxy/server/relief.h"
#include "proxy/server/sender.h"
#include "proxy/server/transfer_memory.h"
#include "proxy/server/unfinished_heads.h"

namespace encore::server {

class Exchange;
class TunnelExchange;
class Worker;
struct CacheView;
struct ListenerContext;
struct PendingHit;
struct RequestView;

class ClientConnection final : public net::StreamHandler {
 public:
  // `listener` is borrowed and outlives all connections.
  ClientConnection(Worker& worker, const ListenerContext& listener, net::Socket socket,
                   const net::Address& peer);
  ~ClientConnection();
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  Worker& worker() const { return worker_; }
  net::Stream& stream() { return stream_; }
  const ListenerContext& listener() const { return listener_; }

  // The exchange has sent its response (or given up). Either the next request is read or the
  // connection is closed. Destroys the exchange at the end of the turn.
  // kDrop closes at once, where nothing is under way: its descriptor is needed.
  enum class After : std::uint8_t { kNext, kClose, kAbort, kDrop };
  void finish_exchange(After after);
  // Gives the connection to a tunnel, which ends it.
  void become_tunnel(std::unique_ptr<TunnelExchange> tunnel);
  // Closes, at the end of this turn, with all that belongs to it.
  void close(After how);
  // Closes in the middle of what is under way, so that none of it looks whole.
  void cut();
  // Kept request bytes shall be looked at again.
  void resume();

  // Counts what the sender holds in memory because the client does not take it.
  void account(const Sender& sender) {
    if (sender.is_blocked() || holding_.bytes() != 0) count_held(sender);
  }
  // Whether this client's connections hold more than its share.
  bool is_over_share() const;
  // For Relief: measures how fast the client takes what there is, and cuts it where that is less
  // than it must be.
  void look_at_reader(MonotonicTime now);
  // What the last look has found, if the client is so slow that what it holds will be held on.
  std::optional<SlowReader> slow_reader() const;
  // Ends it with a reset.
  void cut_reader();

  // For the worker's sweep: closes what has been silent too long.
  void check_timeouts(MonotonicTime now);
  // The process wants to end: closes if idle, else after the response under way.
  void drain();
  // Whether it stands in Shared::clients.
  void set_counted() { counted_ = true; }
  bool is_counted() const { return counted_; }
  // The client will send no more: it has closed the connection, or only its side of it.
  bool has_peer_ended() const { return peer_ended_; }
  // Nothing is under way, and nothing has begun to come.
  bool may_be_given_up() const {
    return is_idle() && !closing_ && head_since_ == MonotonicTime{} && stream_.kept_bytes() == 0;
  }
  // There are too many heads that do not end; this one is refused.
  void refuse_unfinished_head();
  bool is_idle() const { return exchange_ == nullptr && tunnel_ == nullptr && pending_ == nullptr; }

 private:
  std::size_t on_data(net::Stream& stream, std::span<const std::byte> bytes) override;
  void on_writable(net::Stream& stream) override;
  void on_eof(net::Stream& stream) override;
  void on_error(net::Stream& stream, net::CloseReason reason, int os_error) override;

  std::size_t handle_input(std::string_view input);
  void handle_request(std::string_view head_bytes);
  void try_hit(const RequestView& view, std::string_view head_bytes);
  void reply_hit(const RequestView& view, std::string_view head_bytes, CacheView& found);
  void send_large(CacheView& found, std::string_view tail);
  void start_exchange(const RequestView& view, std::string_view head_bytes, CacheView found);
  void refuse(int status, Outcome outcome, std::string_view detail, std::string_view text);
  void count_held(const Sender& sender);
  Sender* sender() const;
  void end_unfinished_head();
  bool flush_batch();
  void pump_pending();
  void end_pending(Outcome outcome);
  void after_pending();
  void next_request();
  bool ends_when_idle() const;
  void continue_later();

  Worker& worker_;
  const ListenerContext& listener_;
  net::Stream stream_;
  http::ParseProgress progress_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<TunnelExchange> tunnel_;
  std::unique_ptr<Sender> pending_;  // a hit that the client did not take at once
  std::unique_ptr<PendingHit> pending_hit_;
  TransferMemory::Holding holding_;
  MonotonicTime head_since_{};  // when the first byte of a head came; zero: none
  bool close_after_ = false;    // no further request is read
  bool closing_ = false;
  bool peer_ended_ = false;
  bool presenting_ = false;  // input is looked at; more of it may follow
  bool counted_ = false;
  std::shared_ptr<int> alive_;  // made when a later turn must know; expires with the connection

 public:
  // The worker's list of connections.
  ClientConnection* previous = nullptr;
  ClientConnection* next = nullptr;
  // Among the worker's unfinished heads.
  UnfinishedHeads::Place head_place;
};

}  // namespace encore::server

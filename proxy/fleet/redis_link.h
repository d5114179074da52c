// RedisLink: one connection to the engine, used by one thread. It blocks that thread for at most
// the time that each call is given. hiredis formats commands and parses replies. The sockets are
// ours: no other thread could end the waits of hiredis 0.14.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "config/redis_url.h"
#include "proxy/fleet/reply.h"
#include "proxy/net/socket.h"

namespace encore::fleet {

// Ends the waits of all links that have it. Thread-safe.
class StopSignal {
 public:
  StopSignal();
  void stop();
  bool is_stopped() const { return is_stopped_.load(); }
  // Readable once it was stopped. Borrowed.
  int descriptor() const { return event_.get(); }
  // Waits so long, or until it is stopped.
  void wait(Nanoseconds time) const;

 private:
  net::Socket event_;
  std::atomic<bool> is_stopped_ = false;
};

// Words of a command.
using Command = std::vector<std::string>;

// Thread-compatible.
class RedisLink {
 public:
  // Both are borrowed.
  RedisLink(const config::RedisUrl& url, const StopSignal& stop) : url_(url), stop_(stop) {}

  // Connects, and sends AUTH and SELECT. Errors: no address, refused, no reply in time, an error
  // reply. A name is resolved by the system, which is not bound by `patience`.
  Result<void> connect(Nanoseconds patience);
  bool is_connected() const { return static_cast<bool>(socket_); }
  void close();

  // Sends the commands together and receives as many replies, which may be errors of the engine.
  // Errors: the connection's, after which it is closed.
  Result<std::vector<Reply>> call(std::span<const Command> commands, Nanoseconds patience);
  Result<Reply> call(const Command& command, Nanoseconds patience);
  // Sends a command without waiting for its reply.
  Result<void> post(const Command& command, Nanoseconds patience);
  // The next reply that was not asked for; nothing: none in that time.
  Result<std::optional<Reply>> receive(Nanoseconds patience);
  // True if the last call failed for the size of a reply.
  bool was_too_large() const { return was_too_large_; }
  // That reply, as far as it was read.
  Reply take_front() { return std::exchange(front_, {}); }

 private:
  Result<void> open(MonotonicTime end);
  Result<void> send(std::string_view bytes, MonotonicTime end);
  // False: the time is over.
  Result<bool> wait_for(short events, MonotonicTime end) const;
  Result<bool> read_some(MonotonicTime end);
  std::unexpected<Error> broken(std::string why);

  const config::RedisUrl& url_;
  const StopSignal& stop_;
  net::Socket socket_;
  std::optional<ReplyReader> reader_;
  bool was_too_large_ = false;
  Reply front_;
};

}  // namespace encore::fleet

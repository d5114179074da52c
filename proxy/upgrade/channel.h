// Channel: one end of the socket pair between an old process and the new one. Each packet is one
// message, with descriptors where it has some. Confined to one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "proxy/net/socket.h"
#include "proxy/upgrade/message.h"

namespace encore::upgrade {

// The kernel takes 253 in one packet.
inline constexpr std::size_t kDescriptorsMax = 250;

struct ReceivedMessage {
  Message message;
  std::vector<net::Socket> descriptors = {};
};

class Channel {
 public:
  // Both ends; neither outlives an exec. Errors: no descriptors.
  static Result<std::pair<Channel, Channel>> pair();
  // Takes the descriptor over.
  explicit Channel(net::Socket socket) : socket_(std::move(socket)) {}

  // Sends it now, and waits up to some seconds for a peer that does not read. The descriptors are
  // borrowed, at most kDescriptorsMax. Errors: the peer has gone, or does not read.
  Result<void> send(const Message& message, const std::vector<int>& descriptors = {});

  enum class Nothing {
    kYet,     // nothing has come
    kEver,    // the peer has ended
    kBroken,  // the peer has sent something else than messages; the channel is of no use any more
  };
  // Never waits.
  std::expected<ReceivedMessage, Nothing> receive();
  // Waits until there is something to receive, or for so long. False: the time is over.
  bool wait(Nanoseconds time) const;

  int descriptor() const { return socket_.get(); }
  net::Socket release() { return std::move(socket_); }
  explicit operator bool() const { return static_cast<bool>(socket_); }

 private:
  net::Socket socket_;
};

// Bytes in memory that another process may read: a descriptor for a message. Errors: no memory.
Result<net::Socket> write_memory(std::string_view bytes);
// Errors: it cannot be read, or has more than `bytes_max`.
Result<std::string> read_memory(const net::Socket& memory, std::size_t bytes_max);

}  // namespace encore::upgrade

// A connected pair of sockets: a Stream that a test writes to, and its other end, which the test
// reads as slowly as it likes.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "base/check.h"
#include "proxy/net/loop.h"
#include "proxy/net/stream.h"

namespace encore::server {

class StreamPair {
 public:
  // The kernel holds little of what is written, so that writes block early.
  explicit StreamPair(int send_buffer_bytes = 4096) {
    auto made = net::Loop::create();
    ENCORE_CHECK(made.has_value(), "a loop");
    loop = std::move(*made);
    int ends[2];
    ENCORE_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "two sockets");
    ENCORE_CHECK(::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &send_buffer_bytes,
                              sizeof send_buffer_bytes) == 0,
                 "a small buffer");
    other_ = ends[1];
    stream = std::make_unique<net::Stream>(*loop, net::Socket(ends[0]), net::Address(), nullptr);
  }
  ~StreamPair() {
    stream.reset();
    close_other();
  }
  StreamPair(const StreamPair&) = delete;
  StreamPair& operator=(const StreamPair&) = delete;

  void close_other() {
    if (other_ >= 0) ::close(other_);
    other_ = -1;
  }
  // Reads at most `bytes_max` bytes; not more than there are now.
  std::string read(std::size_t bytes_max = 1U << 30U) {
    std::string text;
    char room[8192];
    while (text.size() < bytes_max) {
      const ssize_t got = ::recv(other_, room, std::min(sizeof room, bytes_max - text.size()), 0);
      if (got <= 0) break;
      text.append(room, static_cast<std::size_t>(got));
    }
    return text;
  }

  std::unique_ptr<net::Loop> loop;
  std::unique_ptr<net::Stream> stream;

 private:
  int other_ = -1;
};

}  // namespace encore::server

// The network layer alone: the floor server's canned bytes, served through Loop, Listener and
// Stream. The difference to the floor is the cost of the layer.
//   net_bench --port=P --bytes=1024
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "proxy/net/listener.h"
#include "proxy/net/listening.h"
#include "proxy/net/loop.h"
#include "proxy/net/signals.h"
#include "proxy/net/stream.h"
#include "tests/bench/canned.h"

namespace {

using encore::net::Address;
using encore::net::CloseReason;
using encore::net::Loop;
using encore::net::Socket;
using encore::net::Stream;
using encore::net::WriteStatus;

// One client; it owns itself until its peer has gone.
class Connection final : encore::net::StreamHandler {
 public:
  Connection(Loop& loop, Socket socket, const Address& peer, std::string_view answer)
      : stream_(loop, std::move(socket), peer, this), answer_(answer) {
    stream_.resume_reading();
  }

 private:
  std::size_t on_data(Stream&, std::span<const std::byte> bytes) override {
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!rest_.empty()) return 0;
    const std::size_t end = text.find("\r\n\r\n");
    if (end == std::string_view::npos) return 0;
    rest_ = answer_;
    send();
    return end + 4;
  }
  void on_writable(Stream&) override { send(); }
  void on_eof(Stream&) override { delete this; }
  void on_error(Stream&, CloseReason, int) override { delete this; }

  void send() {
    const auto result = stream_.write(rest_);
    rest_.remove_prefix(result.bytes);
    if (result.status == WriteStatus::kAll && stream_.kept_bytes() > 0) stream_.resume_reading();
  }

  Stream stream_;
  std::string_view answer_;
  std::string_view rest_;
};

}  // namespace

int main(int argc, char** argv) {
  using encore::bench::number_argument;
  const auto port = static_cast<std::uint16_t>(number_argument(argc, argv, "port", 0));
  const std::string answer =
      encore::bench::canned_response(number_argument(argc, argv, "bytes", 1024), "Age: 1\r\n", 0);
  auto loop = Loop::create();
  if (!loop) return 1;
  const encore::net::Signals signals(**loop, {SIGTERM, SIGINT}, [&](int) { (*loop)->stop(); });
  auto listening = encore::net::open_listening(Address::loopback_v4(port));
  if (!listening) {
    std::fprintf(stderr, "%s\n", listening.error().message.c_str());
    return 1;
  }
  const auto listener = encore::net::Listener::take(
      **loop, std::move(*listening), [&](Socket socket, const Address& peer) {
        new Connection(**loop, std::move(socket), peer, answer);
      });
  (*loop)->run();
  return 0;
}

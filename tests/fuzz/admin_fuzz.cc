// Connections of the admin listener: whatever the bytes, the same requests come out however the
// bytes are cut, no body is larger than its limit, each request is answered once, and the
// connection ends when its client has. The first byte is the size of the reads.
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "proxy/admin/admin_connection.h"
#include "proxy/net/deferred_deleter.h"
#include "proxy/net/loop.h"

using namespace encore;

namespace {

constexpr std::size_t kBodyMax = 300;

struct Told {
  std::vector<std::string> requests;
  std::string answers;
  bool operator==(const Told&) const = default;
};

// One connection, and its client.
class Connection final : private server::AdminConnection::Owner {
 public:
  explicit Connection(net::Loop& loop) : loop_(loop), retired_(loop, [] {}) {
    options_.head_bytes_max = 1024;
    options_.body_bytes_max_for = [](const server::AdminRequest& head) {
      return head.path == "/none" ? 0 : kBodyMax;
    };
    int ends[2];
    ENCORE_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0,
                 "two sockets");
    client_ = net::Socket(ends[1]);
    connection_ = std::make_unique<server::AdminConnection>(
        static_cast<Owner&>(*this), loop, net::Socket(ends[0]), net::Address::loopback_v4(0));
  }

  Told take(std::string_view bytes, std::size_t step) {
    for (std::size_t at = 0; at < bytes.size() && connection_ != nullptr; at += step) {
      const std::string_view piece = bytes.substr(at, step);
      if (::send(client_.get(), piece.data(), piece.size(), MSG_NOSIGNAL) < 0) break;
      turn();
    }
    ::shutdown(client_.get(), SHUT_WR);
    for (std::size_t i = 0; i < bytes.size() + 4 && connection_ != nullptr; ++i) turn();
    ENCORE_CHECK(connection_ == nullptr, "a connection ends with its client");
    ENCORE_CHECK(begun_ <= ended_, "each request ends");
    turn();
    return told_;
  }

 private:
  void turn() {
    loop_.stop();
    loop_.run();
    char room[4096];
    for (ssize_t got = 0; (got = ::recv(client_.get(), room, sizeof room, 0)) > 0;) {
      told_.answers.append(room, static_cast<std::size_t>(got));
    }
  }
  const server::AdminOptions& options() const override { return options_; }
  void handle(server::AdminRequest&& request, server::AdminReply to) override {
    ENCORE_CHECK(request.body.size() <= kBodyMax, "a body has a limit");
    ENCORE_CHECK(request.path != "/none" || request.body.empty(), "and that of its path");
    ++begun_;
    std::string text = request.method + ' ' + request.path + '?' + request.query + ' ' +
                       std::to_string(request.body_left_out) + request.body;
    for (const auto& [name, value] : request.fields) text.append(name).append(1, ':').append(value);
    told_.requests.push_back(std::move(text));
    if (request.path != "/silent") to.send({.content_type = "", .fields = {}, .body = "ok"});
  }
  void on_request_end() override { ++ended_; }
  void retire(server::AdminConnection&) override { retired_.add(std::move(connection_)); }

  net::Loop& loop_;
  server::AdminOptions options_;
  net::DeferredDeleter retired_;
  net::Socket client_;
  std::unique_ptr<server::AdminConnection> connection_;
  Told told_;
  int begun_ = 0;
  int ended_ = 0;
};

// Answers of one second and the next differ in this.
void cut_dates(std::string& answers) {
  for (std::size_t at = 0; (at = answers.find("Date: ", at)) != std::string::npos;) {
    answers.erase(at, answers.find('\n', at) - at);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 8192) return 0;
  static const std::unique_ptr<net::Loop> loop = std::move(*net::Loop::create());
  // A fault of a head that has not ended may be found sooner or later.
  const std::string bytes =
      std::string(reinterpret_cast<const char*>(data) + 1, size - 1) + "\r\n\r\n";
  Told whole = Connection(*loop).take(bytes, bytes.size() + 1);
  Told cut = Connection(*loop).take(bytes, data[0] % 64 + std::size_t{1});
  ENCORE_CHECK(whole.requests == cut.requests, "a cut changes no request");
  cut_dates(whole.answers);
  cut_dates(cut.answers);
  ENCORE_CHECK(whole.answers == cut.answers, "nor an answer");
  return 0;
}

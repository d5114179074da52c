#include "proxy/net/admin_server.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <vector>

#include "tests/catch.h"
#include "tests/net/net_test_support.h"

namespace encore::net {
namespace {

struct Serving {
  explicit Serving(AdminServer::Options options = {.address = Address::loopback_v4(0)}) {
    auto created =
        AdminServer::create(*loop, options, [this](const AdminRequest& request, AdminReply reply) {
          seen.push_back(request);
          if (request.path == "/later") {
            owed.push_back(std::move(reply));
          } else {
            reply.send(response);
          }
        });
    REQUIRE(created.has_value());
    server = std::move(*created);
  }
  // Sends `request` on a new connection and returns what came until the server closed or
  // `enough` was seen.
  std::string exchange(const std::string& request, const std::string& enough) {
    const Socket client = begin(request);
    return finish(client, enough);
  }
  Socket begin(const std::string& request) {
    Socket client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const Address address = server->address();
    REQUIRE(::connect(client.get(), address.data(), address.size()) == 0);
    ::fcntl(client.get(), F_SETFL, O_NONBLOCK);
    send_all(client, request);
    return client;
  }
  std::string finish(const Socket& client, const std::string& enough) {
    std::string got;
    loop.run_until([&] {
      char buffer[4096];
      const ssize_t more = ::recv(client.get(), buffer, sizeof buffer, 0);
      if (more > 0) got.append(buffer, static_cast<std::size_t>(more));
      return more == 0 || (more < 0 && errno != EAGAIN) ||
             (!enough.empty() && got.find(enough) != std::string::npos);
    });
    return got;
  }
  TestLoop loop;
  std::vector<AdminRequest> seen;
  std::vector<AdminReply> owed;  // to the requests for /later
  AdminResponse response;
  std::unique_ptr<AdminServer> server;
};

}  // namespace

TEST_CASE("the handler sees the request and its answer goes out whole", "[net][admin]") {
  Serving s;
  s.response = {.status = 202,
                .content_type = "application/json",
                .fields = {{"Cache-Control", "no-store"}},
                .body = "{\"ok\":true}"};
  const std::string got = s.exchange(
      "POST /purge%20x?key=a%26b HTTP/1.1\r\nHost: 127.0.0.1:3129\r\nX-Twice: 1\r\nx-twice: 2\r\n"
      "Content-Length: 4\r\n\r\nbody",
      "{\"ok\":true}");
  REQUIRE(s.seen.size() == 1);
  const AdminRequest& request = s.seen[0];
  CHECK(request.method == "POST");
  CHECK(request.path == "/purge%20x");
  CHECK(request.query == "key=a%26b");
  CHECK(request.body == "body");
  CHECK(request.field("host") == "127.0.0.1:3129");
  CHECK(request.field_count("X-TWICE") == 2);
  CHECK(request.field("absent").empty());
  CHECK(request.peer.is_loopback());
  CHECK(request.peer.port() != 0);
  CHECK(got.find("HTTP/1.1 202 ") == 0);
  CHECK(got.find("Content-Type: application/json\r\n") != std::string::npos);
  CHECK(got.find("Content-Length: 11\r\n") != std::string::npos);
  CHECK(got.find("Cache-Control: no-store\r\n") != std::string::npos);
}

TEST_CASE("the answer to HEAD has the length and no body", "[net][admin]") {
  Serving s;
  s.response.body = "0123456789";
  const std::string got =
      s.exchange("HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "");
  CHECK(s.seen.at(0).method == "HEAD");
  CHECK(got.find("Content-Length: 10\r\n") != std::string::npos);
  CHECK(got.ends_with("\r\n\r\n"));
}

TEST_CASE("what is too large or malformed never reaches the handler", "[net][admin]") {
  Serving s({.address = Address::loopback_v4(0), .head_bytes_max = 1024, .body_bytes_max = 100});
  const std::string head(2000, 'x');
  s.exchange("GET / HTTP/1.1\r\nHost: x\r\nX: " + head + "\r\n\r\n", "\r\n\r\n");
  const std::string body =
      s.exchange("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n" + head, "\r\n\r\n");
  CHECK(body.find(" 413 ") != std::string::npos);
  s.exchange("nonsense\r\n\r\n", "\r\n\r\n");
  s.exchange("BREW / HTTP/1.1\r\nHost: x\r\n\r\n", "\r\n\r\n");
  CHECK(s.seen.empty());
  // At the limit it is taken.
  s.exchange("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n" + std::string(100, 'x'),
             "\r\n\r\n");
  CHECK(s.seen.size() == 1);
}

TEST_CASE("an admin address in use is refused by name", "[net][admin]") {
  Serving s;
  const auto second = AdminServer::create(*s.loop, {.address = s.server->address()},
                                          [](const AdminRequest&, AdminReply) {});
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().message.find(s.server->address().to_string()) != std::string::npos);
}

TEST_CASE("a response may come later, and others before it", "[net][admin]") {
  Serving s;
  const std::string later = "GET /later HTTP/1.1\r\nHost: x\r\n\r\n";
  const Socket waiting = s.begin(later);
  s.loop.run_until([&] { return s.owed.size() == 1; });
  s.response.body = "now";
  CHECK(s.exchange("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "now").ends_with("now"));
  CHECK(receive_now(waiting).empty());
  s.response.body = "then";
  s.owed[0].send(s.response);
  CHECK(s.finish(waiting, "then").ends_with("then"));

  // One that nobody has an answer for.
  const Socket unanswered = s.begin(later);
  s.loop.run_until([&] { return s.owed.size() == 2; });
  s.owed.clear();
  CHECK(s.finish(unanswered, "Error\n").starts_with("HTTP/1.1 500 "));
}

TEST_CASE("a response to a client or from a server that is gone goes nowhere", "[net][admin]") {
  Serving s;
  const std::string later = "GET /later HTTP/1.1\r\nHost: x\r\n\r\n";
  {
    const Socket gone = s.begin(later);
    s.loop.run_until([&] { return s.owed.size() == 1; });
  }
  s.loop.run_turns(3);
  s.owed[0].send(s.response);
  const Socket waiting = s.begin(later);
  s.loop.run_until([&] { return s.owed.size() == 2; });
  s.server.reset();
  s.owed[1].send(s.response);
  s.owed.clear();
  s.loop.run_turns(3);
  CHECK(s.seen.size() == 2);
}

}  // namespace encore::net

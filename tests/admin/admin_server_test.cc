#include "proxy/admin/admin_server.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/net/net_test_support.h"

namespace encore::server {
namespace {

using net::Address;
using net::receive_now;
using net::send_all;
using net::Socket;
using net::TestLoop;

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
      char buffer[65536];
      ssize_t more = 0;
      while ((more = ::recv(client.get(), buffer, sizeof buffer, 0)) > 0) {
        got.append(buffer, static_cast<std::size_t>(more));
      }
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

TEST_CASE("the handler sees the request and its answer goes out whole", "[admin]") {
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

TEST_CASE("the answer to HEAD has the length and no body", "[admin]") {
  Serving s;
  s.response.body = "0123456789";
  const std::string got =
      s.exchange("HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "");
  CHECK(s.seen.at(0).method == "HEAD");
  CHECK(got.find("Content-Length: 10\r\n") != std::string::npos);
  CHECK(got.ends_with("\r\n\r\n"));
}

TEST_CASE("what is too large or malformed never reaches the handler", "[admin]") {
  Serving s({.address = Address::loopback_v4(0), .head_bytes_max = 1024, .body_bytes_max = 100});
  const std::string head(2000, 'x');
  const auto [status, request] = GENERATE_COPY(table<const char*, std::string>({
      {"431 ", "GET / HTTP/1.1\r\nHost: x\r\nX: " + head + "\r\n\r\n"},
      {"431 ", "GET / HTTP/1.1\r\nHost: x\r\nX: " + head},
      {"400 ", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1x1\r\n\r\n" + head},
      {"400 ", "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx"},
      {"400 ", "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {"400 ", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n"},
      {"417 ", "POST / HTTP/1.1\r\nContent-Length: 1\r\nExpect: tea\r\n\r\nx"},
      {"400 ", "nonsense\r\n\r\n"},
      {"400 ", "GET / HTTP/1.1\nHost: x\n\n"},
      {"505 ", "GET / HTTP/2.0\r\n\r\n"},
      {"501 ", "BREW / HTTP/1.1\r\nHost: x\r\n\r\n"},
  }));
  CAPTURE(request);
  // No request is read behind it.
  const std::string got = s.exchange(request + "GET / HTTP/1.1\r\n\r\n", "");
  CHECK(got.starts_with("HTTP/1.1 " + std::string(status)));
  CHECK(got.find("\r\nConnection: close\r\n") != std::string::npos);
  CHECK(got.find("HTTP/1.1", 1) == std::string::npos);
  CHECK(s.seen.empty());
  // At the limit it is taken.
  s.exchange("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n" + std::string(100, 'x'),
             "\r\n\r\n");
  CHECK(s.seen.size() == 1);
}

TEST_CASE("who may send more than others is known by the head", "[admin]") {
  Serving s({.address = Address::loopback_v4(0),
             .body_bytes_max = 1000,
             .body_bytes_max_for = [](const AdminRequest& head) -> std::size_t {
               return head.method == "PUT" && head.path == "/big" && head.field("key") == "yes"
                          ? 300'000
                          : 1000;
             }});
  s.response.body = "taken";
  const auto put = [](std::string_view target, std::string_view fields, std::size_t size) {
    return "PUT " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) +
           "Content-Length: " + std::to_string(size) + "\r\n\r\n" + std::string(size, 'x');
  };
  CHECK(s.exchange(put("/big?a", "Key: yes\r\n", 300'000), "taken").starts_with("HTTP/1.1 200"));
  REQUIRE(s.seen.size() == 1);
  CHECK(s.seen[0].body == std::string(300'000, 'x'));
  CHECK(s.seen[0].body_left_out == 0);
  CHECK(s.exchange(put("/small", "key: yes\r\n", 1000), "taken").starts_with("HTTP/1.1 200"));
  REQUIRE(s.seen.size() == 2);
  // Above its limit none is read, and the handler says what there is to say.
  for (const auto& [target, field, size] :
       std::vector<std::tuple<const char*, const char*, int>>{{"/big", "key:yes\r\n", 300'001},
                                                              {"/big", "key: no\r\n", 1001},
                                                              {"/small", "key: yes\r\n", 1001}}) {
    s.seen.clear();
    const std::string got = s.exchange(put(target, field, static_cast<std::size_t>(size)), "");
    CHECK(got.starts_with("HTTP/1.1 200"));
    CHECK(got.find("Connection: close\r\n") != std::string::npos);
    REQUIRE(s.seen.size() == 1);
    CHECK(s.seen[0].body.empty());
    CHECK(s.seen[0].body_left_out == static_cast<std::uint64_t>(size));
    CHECK(s.seen[0].field("host") == "a");
  }
}

TEST_CASE("a body that is not to be read is answered before it comes", "[admin]") {
  const std::size_t most = 1000;
  Serving s(
      {.address = Address::loopback_v4(0), .body_bytes_max_for = [&](const AdminRequest& head) {
         return head.field_count("Transfer-Encoding") == 0 ? most : 0;
       }});
  s.response.status = 401;
  const auto [fields, left_out] = GENERATE(table<const char*, std::uint64_t>({
      {"Content-Length: 1001\r\n", 1001},
      {"Content-Length: 1001\r\nExpect: 100-continue\r\n", 1001},
      {"Content-Length: 9223372036854775807\r\n", 9223372036854775807},
      {"Transfer-Encoding: chunked\r\n", UINT64_MAX},
  }));
  CAPTURE(fields);
  const std::string got =
      s.exchange("POST / HTTP/1.1\r\nHost: x\r\n" + std::string(fields) + "\r\n", "");
  CHECK(got.starts_with("HTTP/1.1 401 "));
  REQUIRE(s.seen.size() == 1);
  CHECK(s.seen[0].body_left_out == left_out);
}

TEST_CASE("who still sends a body that is not read is not reset", "[admin]") {
  Serving s({.address = Address::loopback_v4(0), .body_bytes_max = 1000});
  const std::string part(50'000, 'x');
  const Socket client =
      s.begin("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 150000\r\n\r\n" + part);
  CHECK(s.finish(client, "").starts_with("HTTP/1.1 200 "));
  for (int i = 0; i < 2; ++i) {
    CHECK(send_all(client, part));
    s.loop.run_turns(8);
  }
}

TEST_CASE("chunks are not read where there may be no body", "[admin]") {
  std::size_t most = 0;
  Serving s({.address = Address::loopback_v4(0),
             .body_bytes_max_for = [&](const AdminRequest&) { return most; }});
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  CHECK(s.exchange(head, "\r\n\r\n").starts_with("HTTP/1.1 200 "));
  CHECK(s.seen.at(0).body_left_out == UINT64_MAX);
  most = 3;
  s.exchange(head + "3\r\nabc\r\n0\r\n\r\n", "\r\n\r\n");
  CHECK(s.seen.at(1).body == "abc");
  CHECK(s.exchange(head + "4\r\nabcd\r\n0\r\n\r\n", "\r\n\r\n").starts_with("HTTP/1.1 413 "));
  CHECK(s.seen.size() == 2);
}

TEST_CASE("however a connection's bytes are cut, its requests are the same", "[admin]") {
  Serving s({.address = Address::loopback_v4(0),
             .body_bytes_max = 4,
             .body_bytes_max_for = [](const AdminRequest& head) -> std::size_t {
               return head.field("key") == "yes" ? 3000 : 4;
             }});
  s.response.body = "taken";
  std::string bytes;
  bytes += "POST /a?b HTTP/1.1\r\nHost: x\r\nKey: yes\r\nContent-Length: 3000\r\n\r\n";
  bytes += std::string(1500, '\n') + std::string(1500, 'z');
  bytes += "\r\nGET http://y/b HTTP/1.1\r\nHost: y\r\n\r\n";
  bytes += "PUT /c HTTP/1.1\r\nContent-Length: 4\r\n\r\n\r\n\r\n";
  bytes +=
      "POST /d HTTP/1.1\r\nkey:yes \r\nTransfer-Encoding: chunked\r\n\r\n2\r\n\n\n\r\n0\r\n\r\n";
  bytes += "POST /e HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcdeGET /never HTTP/1.1\r\n\r\n";
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"/a", std::string(1500, '\n') + std::string(1500, 'z')},
      {"/b", ""},
      {"/c", "\r\n\r\n"},
      {"/d", "\n\n"},
      {"/e", ""}};
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    s.seen.clear();
    const Socket client = s.begin("");
    std::size_t at = 0;
    while (at < bytes.size()) {
      // Small ones and whole ones; a piece is read before the next is sent.
      const std::size_t most = std::size_t{1} << (random() % 13);
      const std::size_t size = std::min(bytes.size() - at, 1 + random() % most);
      if (!send_all(client, std::string_view(bytes).substr(at, size))) break;
      at += size;
      s.loop.run_turns(2);
    }
    const std::string got = s.finish(client, "");
    REQUIRE(s.seen.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK(s.seen[i].path == expected[i].first);
      CHECK(s.seen[i].body == expected[i].second);
    }
    CHECK(s.seen.back().body_left_out == 5);
    CHECK(s.server->under_way() == 0);
  }
}

TEST_CASE("nothing beyond a head is read while a request is answered", "[admin]") {
  Serving s({.address = Address::loopback_v4(0),
             .head_bytes_max = 4096,
             .idle_timeout = std::chrono::hours(1)});
  s.response.shared_body = std::make_shared<const std::string>(30'000'000, 'm');
  const Socket client = s.begin("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  s.loop.run_until([&] { return s.seen.size() == 1; });
  // The answer is not read; what the server does not read either stays with the kernel, which
  // takes no more than some MiB.
  const std::string more(1 << 20, 'x');
  std::size_t sent = 0;
  for (int i = 0; i < 1500; ++i) {
    const ssize_t wrote = ::send(client.get(), more.data(), more.size(), MSG_NOSIGNAL);
    if (wrote > 0) sent += static_cast<std::size_t>(wrote);
    s.loop.run_turns(8);
  }
  CHECK(sent < (std::size_t{40} << 20U));
  CHECK(s.server->under_way() == 1);
}

TEST_CASE("who takes too long is cut", "[admin]") {
  int cuts = 0;
  int ends = 0;
  const AdminServer::Options options = {.address = Address::loopback_v4(0),
                                        .idle_timeout = std::chrono::hours(1),
                                        .transfer_grace = Nanoseconds(0),
                                        .bytes_per_second_min = std::uint64_t{1} << 40U,
                                        .on_cut = [&] { ++cuts; },
                                        .on_end = [&] { ++ends; }};
  Serving s(options);
  SECTION("reading") {
    s.response.shared_body = std::make_shared<const std::string>(30'000'000, 'm');
    const Socket slow = s.begin("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    s.loop.run_until([&] { return cuts == 1; });
  }
  SECTION("sending") {
    const Socket slow = s.begin("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n");
    s.loop.run_until([&] { return cuts == 1; });
    CHECK(s.finish(slow, "").empty());
  }
  CHECK(ends == 1);
  CHECK(s.server->under_way() == 0);
  // A client that waits for a response is not cut off.
  const Socket waiting = s.begin("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  s.loop.run_until([&] { return s.owed.size() == 1; });
  CHECK(s.server->under_way() == 1);
  s.response = AdminResponse();
  s.response.body = "then";
  s.owed[0].send(s.response);
  CHECK(s.finish(waiting, "then").ends_with("then"));
  s.loop.run_until([&] { return s.server->under_way() == 0; });
  CHECK(ends == 2);
}

TEST_CASE("a body that is shared is held until it has gone", "[admin]") {
  Serving s;
  auto body = std::make_shared<const std::string>(30'000'000, 'm');
  const std::weak_ptr<const std::string> held = body;
  s.response.shared_body = std::move(body);
  const Socket client = s.begin("GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  s.loop.run_until([&] { return s.seen.size() == 1; });
  s.response = {};
  CHECK_FALSE(held.expired());
  const std::string got = s.finish(client, "");
  CHECK(got.find("\r\nContent-Length: 30000000\r\n") != std::string::npos);
  CHECK(got.ends_with(std::string(30'000'000, 'm')));
  CHECK(held.expired());
}

TEST_CASE("a client that asks first whether its body is wanted is told", "[admin]") {
  Serving s;
  s.response.body = "taken";
  const Socket client =
      s.begin("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  CHECK(s.finish(client, "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  CHECK(s.seen.empty());
  send_all(client, "body");
  CHECK(s.finish(client, "taken").starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(s.seen.at(0).body == "body");
}

TEST_CASE("a connection stays as its client has it", "[admin]") {
  Serving s;
  s.response.body = "+";
  const auto [request, field, stays] = GENERATE(table<const char*, const char*, bool>({
      {"GET / HTTP/1.1\r\n\r\n", "", true},
      {"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "Connection: close", false},
      {"GET / HTTP/1.0\r\n\r\n", "Connection: close", false},
      {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "Connection: keep-alive", true},
  }));
  CAPTURE(request);
  const Socket client = s.begin(request);
  const std::string got = s.finish(client, "+");
  const std::string version = std::string_view(request).substr(6, 8) == "HTTP/1.0" ? "1.0" : "1.1";
  CHECK(got.starts_with("HTTP/" + version + " 200 OK\r\n"));
  CHECK(got.find("\r\nDate: ") != std::string::npos);
  CHECK(got.find(field) != std::string::npos);
  if (stays) CHECK(got.find("Connection: close") == std::string::npos);
  send_all(client, "GET /again HTTP/1.1\r\nConnection: close\r\n\r\n");
  CHECK(s.finish(client, "").ends_with("+") == stays);
  CHECK(s.seen.size() == (stays ? 2U : 1U));
}

TEST_CASE("a client that has ended its side has all its answers", "[admin]") {
  Serving s;
  s.response.body = "+";
  const bool is_later = GENERATE(false, true);
  std::string bytes = is_later ? "GET /later HTTP/1.1\r\n\r\n" : "GET / HTTP/1.1\r\n\r\n";
  for (int i = 0; i < 4; ++i) bytes += "GET / HTTP/1.1\r\n\r\n";
  const std::string rest = GENERATE("", "GET / HT");
  const Socket client = s.begin(bytes + rest);
  ::shutdown(client.get(), SHUT_WR);
  if (is_later) {
    s.loop.run_until([&] { return s.owed.size() == 1; });
    s.loop.run_turns(3);
    s.owed[0].send(s.response);
  }
  const std::string got = s.finish(client, "");
  CHECK(std::ranges::count(got, '+') == 5);
  CHECK(s.server->under_way() == 0);
}

TEST_CASE("a head that does not end and an idle connection are closed", "[admin]") {
  const auto idle = GENERATE(Nanoseconds(0), Nanoseconds(std::chrono::hours(1)));
  int cuts = 0;
  Serving s({.address = Address::loopback_v4(0),
             .idle_timeout = idle,
             .transfer_grace = Nanoseconds(0),
             .on_cut = [&] { ++cuts; }});
  const Socket half = s.begin("GET / HTTP/1.1\r\nHost: ");
  CHECK(s.finish(half, "").empty());
  if (idle == Nanoseconds(0)) {
    const Socket silent = s.begin("");
    CHECK(s.finish(silent, "").empty());
  }
  CHECK(cuts == 0);
  CHECK(s.seen.empty());
}

TEST_CASE("connections that ask nothing give way to others", "[admin]") {
  Serving s({.address = Address::loopback_v4(0), .connections_max = 3});
  s.response.body = "+";
  const Socket first = s.begin("GET / HTTP/1.1\r\n\r\n");
  CHECK(s.finish(first, "+").ends_with("+"));
  const Socket half = s.begin("GET / HTT");
  const Socket waiting = s.begin("GET /later HTTP/1.1\r\n\r\n");
  s.loop.run_until([&] { return s.owed.size() == 1; });
  send_all(first, "GET / HTTP/1.1\r\n\r\n");
  CHECK(s.finish(first, "+").ends_with("+"));
  // The one that is silent for longest.
  const Socket more = s.begin("GET /later HTTP/1.1\r\n\r\n");
  s.loop.run_until([&] { return s.owed.size() == 2; });
  CHECK(s.finish(half, "").empty());
  send_all(first, "GET /later HTTP/1.1\r\n\r\n");
  s.loop.run_until([&] { return s.owed.size() == 3; });
  // All have a request in progress.
  CHECK(s.exchange("GET / HTTP/1.1\r\n\r\n", "").empty());
  for (auto& owed : s.owed) owed.send(s.response);
  for (const Socket* client : {&first, &waiting, &more}) {
    CHECK(s.finish(*client, "+").ends_with("+"));
  }
  CHECK(s.exchange("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "").ends_with("+"));
}

TEST_CASE("an admin address in use is refused by name", "[admin]") {
  Serving s;
  const auto second = AdminServer::create(*s.loop, {.address = s.server->address()},
                                          [](const AdminRequest&, AdminReply) {});
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().message.find(s.server->address().to_string()) != std::string::npos);
}

TEST_CASE("a response may come later, and others before it", "[admin]") {
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

TEST_CASE("a response to a client or from a server that is gone goes nowhere", "[admin]") {
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

}  // namespace encore::server

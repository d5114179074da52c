// The admin pages over a real listener: who may ask, and what is answered.
#include "proxy/process/admin.h"

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proxy/net/loop.h"
#include "proxy/net/socket.h"
#include "proxy/net/socket_options.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

struct Process final : Administered {
  const config::Config& config() const override { return settings; }
  bool is_ready() const override { return ready; }
  Snapshot snapshot() const override { return {}; }
  ProcessStatus status() const override { return {}; }
  bool purge(PurgeOrder order, std::move_only_function<void(std::uint64_t)> done) override {
    orders.push_back(std::move(order));
    if (!takes) return false;
    if (at_once) {
      done(1);
    } else {
      dones.push_back(std::move(done));
    }
    return true;
  }
  config::Config settings;
  bool ready = true;
  bool takes = true;
  bool at_once = true;
  std::vector<PurgeOrder> orders;
  std::vector<std::move_only_function<void(std::uint64_t)>> dones;
};

class Admin {
 public:
  Admin() : loop_(std::move(*net::Loop::create())) {
    process.settings.admin.allow_hosts = {"metrics.example"};
    auto server =
        net::AdminServer::create(*loop_, {.address = net::Address::loopback_v4(0)},
                                 [this](const net::AdminRequest& request, net::AdminReply reply) {
                                   answer_admin(process, request, std::move(reply));
                                 });
    REQUIRE(server.has_value());
    server_ = std::move(*server);
  }
  void ask(std::string_view line, std::string_view fields) {
    client_ = net::open_tcp(AF_INET);
    const net::Address& address = server_->address();
    (void)::connect(client_.get(), address.data(), address.size());
    text_ = std::string(line) + " HTTP/1.1\r\n" + std::string(fields) +
            "Connection: close\r\nContent-Length: 0\r\n\r\n";
    heard_.clear();
  }
  // What comes until the end of the connection, or until `done`.
  std::string hear(const std::function<bool()>& done = [] { return false; }) {
    constexpr int kTurnsMax = 1'000'000;
    for (int i = 0; i < kTurnsMax && !done(); ++i) {
      if (!text_.empty() && ::send(client_.get(), text_.data(), text_.size(), MSG_NOSIGNAL) > 0) {
        text_.clear();
      }
      loop_->stop();
      loop_->run();
      char room[4096];
      const ssize_t got = ::recv(client_.get(), room, sizeof room, 0);
      if (got == 0) return heard_;
      if (got > 0) heard_.append(room, static_cast<std::size_t>(got));
    }
    REQUIRE(done());
    return heard_;
  }
  std::string answer(std::string_view line, std::string_view fields = "Host: localhost\r\n") {
    ask(line, fields);
    return hear();
  }
  int status(std::string_view line, std::string_view fields = "Host: localhost\r\n") {
    const std::string heard = answer(line, fields);
    REQUIRE(heard.size() > 12);
    return std::stoi(heard.substr(9, 3));
  }

  Process process;

 private:
  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<net::AdminServer> server_;
  net::Socket client_;
  std::string text_;
  std::string heard_;
};

TEST_CASE("pages are for those who call the listener by a name of its own", "[process][admin]") {
  Admin admin;
  const auto [host, allowed] = GENERATE(table<const char*, bool>({
      {"Host: localhost\r\n", true},
      {"Host: LOCALHOST:3129\r\n", true},
      {"Host: 127.0.0.1\r\n", true},
      {"Host: [::1]:3129\r\n", true},
      {"Host: metrics.example\r\n", true},
      {"Host: evil.example\r\n", false},
      {"Host: localhost.evil.example\r\n", false},
      {"Host: 192.0.2.1\r\n", false},
      {"Host: \r\n", false},
      {"Host: localhost\r\nHost: localhost\r\n", false},
  }));
  CAPTURE(host);
  CHECK(admin.status("GET /metrics", host) == (allowed ? 200 : 403));
  CHECK(admin.status("POST /purge?url=http://a/", host) == (allowed ? 200 : 403));
  CHECK(admin.process.orders.size() == (allowed ? 1 : 0));
  // Who watches many machines need not know their names.
  CHECK(admin.status("GET /healthz", host) == 200);
}

TEST_CASE("a listener on every address is called by any of them", "[process][admin]") {
  Admin admin;
  admin.process.settings.admin.address = "0.0.0.0:3129";
  CHECK(admin.status("GET /metrics", "Host: 192.0.2.1\r\n") == 200);
  CHECK(admin.status("GET /metrics", "Host: evil.example\r\n") == 403);
}

TEST_CASE("a page of another origin changes nothing", "[process][admin]") {
  Admin admin;
  const auto [fields, allowed] = GENERATE(table<const char*, bool>({
      {"", true},
      {"Origin: http://localhost\r\n", true},
      {"Origin: http://evil.example\r\n", false},
      {"Origin: null\r\n", false},
      {"Sec-Fetch-Site: same-origin\r\n", true},
      {"Sec-Fetch-Site: none\r\n", true},
      {"Sec-Fetch-Site: cross-site\r\n", false},
      {"Sec-Fetch-Site: same-site\r\n", false},
  }));
  CAPTURE(fields);
  const std::string all = "Host: localhost\r\n" + std::string(fields);
  CHECK(admin.status("POST /purge?tag=x", all) == (allowed ? 200 : 403));
  CHECK(admin.process.orders.size() == (allowed ? 1 : 0));
  CHECK(admin.status("GET /api/stats", all) == 200);
}

TEST_CASE("a purge is answered when it is done, or at once where it is not taken",
          "[process][admin]") {
  Admin admin;
  SECTION("when it is done") {
    admin.process.at_once = false;
    admin.ask("POST /purge?url=http://a/&soft=1", "Host: localhost\r\n");
    CHECK(admin.hear([&] { return !admin.process.dones.empty(); }).empty());
    admin.process.dones[0](7);
    const std::string heard = admin.hear();
    CHECK(heard.starts_with("HTTP/1.1 200 "));
    CHECK(heard.ends_with("{\"purged\": 7, \"soft\": true}\n"));
  }
  SECTION("not taken") {
    admin.process.takes = false;
    const std::string heard = admin.answer("POST /purge?url=http://a/");
    CHECK(heard.starts_with("HTTP/1.1 503 "));
    CHECK(heard.find("Retry-After: 1\r\n") != std::string::npos);
  }
  SECTION("not understood") {
    CHECK(admin.status("POST /purge?nonsense") == 400);
    CHECK(admin.process.orders.empty());
  }
  SECTION("not asked as it must be") {
    CHECK(admin.answer("GET /purge?url=http://a/").find("Allow: POST\r\n") != std::string::npos);
    CHECK(admin.process.orders.empty());
  }
}

TEST_CASE("who watches learns that the process takes no more", "[process][admin]") {
  Admin admin;
  CHECK(admin.status("GET /readyz") == 200);
  admin.process.ready = false;
  CHECK(admin.status("GET /readyz") == 503);
  CHECK(admin.status("GET /healthz") == 200);
}

TEST_CASE("what is no page, or is not read, says what there is", "[process][admin]") {
  Admin admin;
  CHECK(admin.status("GET /nothing") == 404);
  CHECK(admin.status("POST /metrics") == 405);
  CHECK(admin.answer("GET /metrics").find("Cache-Control: no-store\r\n") != std::string::npos);
}

}  // namespace
}  // namespace encore::server

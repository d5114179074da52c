// The admin pages over a real listener: who may ask, and what is answered.
#include "proxy/process/admin.h"

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxy/admin/admin_server.h"
#include "proxy/net/loop.h"
#include "proxy/net/socket.h"
#include "proxy/net/socket_options.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

struct Memory final : MemoryHandover {
  const Token* token() const override { return secret ? &*secret : nullptr; }
  bool save(std::move_only_function<void(Saved)> done) override {
    if (takes) done(std::make_shared<const std::string>("the memory"));
    return takes;
  }
  bool adopt(std::string bytes, std::move_only_function<void(Adopted)> done) override {
    adopted.push_back(std::move(bytes));
    if (takes) done(adoption);
    return takes;
  }
  bool takes = true;
  std::optional<Token> secret;
  std::vector<std::string> adopted;
  Adopted adoption;
};

struct Live final : LiveSource {
  LiveStatus status(const Snapshot&) const override { return {}; }
  const History& history() const override { return rows; }
  OutcomeReport outcome(Outcome) const override { return {}; }
  TopReport top() const override { return {}; }
  History rows;
};

struct Process final : ProcessControl {
  std::optional<pid_t> upgraded;  // nothing: upgrades fail
  const config::Config& config() const override { return settings; }
  bool is_ready() const override { return ready; }
  Snapshot snapshot() const override { return {}; }
  ProcessStatus status() const override { return {}; }
  const LiveSource& live() const override { return page; }
  publish::Resources* published() const override { return resources; }
  void upgrade(std::move_only_function<void(const Result<pid_t>&)> done) override {
    if (upgraded) {
      done(*upgraded);
    } else {
      done(fail("it did not start"));
    }
  }
  bool purge(PurgeOrder order, std::move_only_function<void(const PurgeResult&)> done) override {
    orders.push_back(std::move(order));
    if (!takes) return false;
    if (at_once) {
      done({.count = 1});
    } else {
      dones.push_back(std::move(done));
    }
    return true;
  }
  std::size_t clear_rejections(const Rejections::Which& which) override {
    cleared.push_back(which);
    return cleared.size();
  }
  MemoryHandover& memory() override { return handover; }
  Result<Explanation> explain(const Explained& request) const override {
    if (request.url == "nonsense") return fail("\"nonsense\" is no http(s) URL");
    Explanation explanation;
    explanation.add("request", request.method + " " + request.url + " of " + request.client);
    for (const std::string& field : request.fields) explanation.add("", field);
    return explanation;
  }
  void reload(std::move_only_function<void(const Result<void>&)> done) override {
    ++reloads;
    done(reload_fault.empty() ? Result<void>() : fail(reload_fault));
  }
  void drain() override { ++drains; }
  RequestFollowers& followers() override { return following; }
  int reloads = 0;
  int drains = 0;
  std::string reload_fault;
  RequestTap tap;
  RequestFollowers following{tap};
  Memory handover;
  Live page;
  config::Config settings;
  publish::Resources* resources = nullptr;
  bool ready = true;
  bool takes = true;
  bool at_once = true;
  std::vector<PurgeOrder> orders;
  std::vector<Rejections::Which> cleared;
  std::vector<std::move_only_function<void(const PurgeResult&)>> dones;
};

class Admin {
 public:
  Admin() : loop_(std::move(*net::Loop::create())) {
    process.settings.admin.allow_hosts = {"metrics.example"};
    AdminServer::Options options = {.address = net::Address::loopback_v4(0)};
    options.body_bytes_max_for = [this, usual = options.body_bytes_max](AdminRequest head) {
      come_by_listener(head);
      return admin_body_max(process, head, usual);
    };
    auto server =
        AdminServer::create(*loop_, options, [this](AdminRequest&& request, AdminReply reply) {
          come_by_listener(request);
          answer_admin(process, std::move(request), std::move(reply));
        });
    REQUIRE(server.has_value());
    server_ = std::move(*server);
  }
  // A body of `length` bytes is announced and not sent.
  void ask(std::string_view line, std::string_view fields, std::uint64_t length = 0) {
    client_ = net::open_tcp(AF_INET);
    const net::Address& address = server_->address();
    (void)::connect(client_.get(), address.data(), address.size());
    text_ = std::string(line) + " HTTP/1.1\r\n" + std::string(fields) +
            "Connection: close\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
    heard_.clear();
  }
  // Returns the input until the end of the connection, or until `done`.
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
  std::string answer_before_body(std::string_view line, std::string_view fields,
                                 std::uint64_t length) {
    ask(line, fields, length);
    return hear();
  }
  int status(std::string_view line, std::string_view fields = "Host: localhost\r\n") {
    const std::string heard = answer(line, fields);
    REQUIRE(heard.size() > 12);
    return std::stoi(heard.substr(9, 3));
  }

  Process process;
  // The listener that requests seem to come by, as admin.address has it; empty: the true one.
  std::string listener;

 private:
  void come_by_listener(AdminRequest& request) const {
    if (listener.empty()) return;
    const auto endpoint = config::parse_listen_endpoint(listener);
    REQUIRE(endpoint.has_value());
    request.over_socket = !endpoint->socket.empty();
    if (!request.over_socket) request.listener = *net::Address::parse_ip(endpoint->address, 0);
  }

  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<AdminServer> server_;
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
  // Monitors of many machines need not know their names.
  CHECK(admin.status("GET /healthz", host) == 200);
}

TEST_CASE("pages are for allow_clients, and the probes for everybody", "[process][admin]") {
  Admin admin;
  admin.process.settings.admin.allow_clients = {"192.0.2.0/24"};
  CHECK(admin.answer("GET /metrics").find("Client 127.0.0.1 is not in admin.allow_clients") !=
        std::string::npos);
  CHECK(admin.status("GET /") == 403);
  CHECK(admin.status("GET /no-such-page") == 403);
  CHECK(admin.status("POST /purge?url=http://a/") == 403);
  CHECK(admin.process.orders.empty());
  CHECK(admin.status("GET /healthz", "Host: evil.example\r\n") == 200);
  CHECK(admin.status("GET /readyz", "Host: evil.example\r\n") == 200);
  admin.process.settings.admin.allow_clients = {"192.0.2.0/24", "127.0.0.1"};
  CHECK(admin.status("GET /metrics") == 200);
}

TEST_CASE("away from loopback a change takes the token", "[process][admin]") {
  Admin admin;
  const auto* address = GENERATE("0.0.0.0:3129", "*:3129", "192.0.2.1:3129", "[2001:db8::1]:3129");
  CAPTURE(address);
  admin.listener = address;
  const auto with = [](std::string_view field) {
    return "Host: localhost\r\n" + std::string(field);
  };
  const std::string right = with("Authorization: Bearer 0123456789abcdef\r\n");
  const std::string answer = admin.answer("POST /purge?url=http://a/", right);
  CHECK(answer.starts_with("HTTP/1.1 403 "));
  CHECK(answer.find("admin.token_file") != std::string::npos);
  admin.process.handover.secret = *Token::parse("0123456789abcdef");
  CHECK(admin.status("POST /purge?url=http://a/") == 401);
  CHECK(admin.status("POST /purge?url=http://a/",
                     with("Authorization: Bearer 0123456789abcdeg\r\n")) == 401);
  // Nor is its body waited for.
  CHECK(admin.answer_before_body("POST /purge", with(""), 100).starts_with("HTTP/1.1 401 "));
  CHECK(admin.process.orders.empty());
  CHECK(admin.status("GET /metrics") == 200);
  CHECK(admin.status("POST /purge?url=http://a/", right) == 200);
  CHECK(admin.process.orders.size() == 1);
}

TEST_CASE("an upgrade is answered with the new process, or with why there is none",
          "[process][admin][upgrade]") {
  Admin admin;
  CHECK(admin.status("GET /upgrade") == 405);
  std::string answer = admin.answer("POST /upgrade");
  CHECK(answer.starts_with("HTTP/1.1 409 "));
  CHECK(answer.ends_with("\r\n\r\n409 Conflict\nnothing has changed: it did not start\n"));
  admin.process.upgraded = 4711;
  answer = admin.answer("POST /upgrade");
  CHECK(answer.starts_with("HTTP/1.1 200 "));
  CHECK(answer.ends_with("{\"upgraded\": true, \"process\": 4711}\n"));
  // It changes something.
  admin.listener = "192.0.2.1:3129";
  admin.process.handover.secret = *Token::parse("0123456789abcdef");
  CHECK(admin.status("POST /upgrade", "Host: localhost\r\n") == 401);
}

TEST_CASE("on loopback whoever may come may purge", "[process][admin]") {
  Admin admin;
  const auto* address = GENERATE("127.0.0.1:3129", "127.8.0.1:0", "[::1]:3129", "unix:/run/a.sock");
  CAPTURE(address);
  admin.listener = address;
  admin.process.handover.secret = *Token::parse("0123456789abcdef");
  CHECK(admin.status("POST /purge?url=http://a/") == 200);
}

TEST_CASE("a Unix socket is for whoever can connect, by loopback names", "[process][admin]") {
  Admin admin;
  admin.listener = "unix:/run/a.sock";
  admin.process.settings.admin.allow_clients = {};
  CHECK(admin.status("GET /metrics") == 200);
  CHECK(admin.status("GET /metrics", "Host: 192.0.2.1\r\n") == 403);
}

TEST_CASE("the live page is one response that may ask for nothing but numbers",
          "[process][admin]") {
  Admin admin;
  const std::string page = admin.answer("GET /");
  CHECK(page.starts_with("HTTP/1.1 200 "));
  CHECK(page.find("Content-Type: text/html; charset=utf-8\r\n") != std::string::npos);
  const std::size_t at = page.find("\r\nContent-Security-Policy: default-src 'none'; script-src '");
  REQUIRE(at != std::string::npos);
  const std::string policy = page.substr(at, page.find("\r\n", at + 2) - at);
  CHECK(policy.find("unsafe") == std::string::npos);
  CHECK(policy.find("connect-src 'self'") != std::string::npos);
  CHECK(policy.find("frame-ancestors 'none'") != std::string::npos);
  CHECK(page.ends_with("</html>\n"));
  CHECK(admin.status("POST /") == 405);
}

TEST_CASE("numbers are asked for by time and by name", "[process][admin]") {
  Admin admin;
  const auto [line, expected] = GENERATE(table<const char*, int>({
      {"GET /api/live", 200},
      {"GET /api/live?since=17", 200},
      {"GET /api/live?since=-1", 200},
      {"GET /api/history?since=9223372036854775807", 200},
      {"GET /api/history?since=9223372036854775808", 400},
      {"GET /api/history?since=", 400},
      {"GET /api/history?since=1x", 400},
      {"GET /api/live?until=1", 400},
      {"GET /api/outcome?name=first-request", 200},
      {"GET /api/outcome?name=hit&name=miss", 400},
      {"GET /api/outcome?name=", 400},
      {"GET /api/outcome", 400},
      {"GET /api/outcome?n", 400},
      {"POST /api/live", 405},
  }));
  CAPTURE(line);
  CHECK(admin.status(line) == expected);
}

TEST_CASE("a listener on every address is called by any of them", "[process][admin]") {
  Admin admin;
  admin.listener = "0.0.0.0:3129";
  CHECK(admin.status("GET /metrics", "Host: 192.0.2.1\r\n") == 200);
  CHECK(admin.status("GET /metrics", "Host: evil.example\r\n") == 403);
}

TEST_CASE("a body that will not be taken is not waited for", "[process][admin]") {
  Admin admin;
  const auto with = [](std::string_view field) {
    return "Host: localhost\r\n" + std::string(field);
  };
  const std::string right = with("Authorization: Bearer 0123456789abcdef\r\n");
  const std::string wrong = with("Authorization: Bearer 0123456789abcdeX\r\n");
  constexpr std::uint64_t kLarge = 100'000'000'000;
  const auto asked = [&](std::string_view line, std::string_view fields, std::uint64_t length) {
    return admin.answer_before_body(line, fields, length);
  };
  CHECK(asked("POST /filter/adopt", right, 1).starts_with("HTTP/1.1 403 "));
  admin.process.handover.secret = *Token::parse("0123456789abcdef");
  for (const std::uint64_t length : {std::uint64_t{1}, kLarge}) {
    CAPTURE(length);
    CHECK(asked("POST /filter/adopt", with(""), length).starts_with("HTTP/1.1 401 "));
    CHECK(asked("POST /filter/adopt", wrong, length).starts_with("HTTP/1.1 401 "));
    CHECK(asked("PUT /filter/adopt", wrong, length).starts_with("HTTP/1.1 401 "));
    CHECK(asked("PUT /filter/adopt", right, length).starts_with("HTTP/1.1 405 "));
    CHECK(asked("POST /filter", right, length).starts_with("HTTP/1.1 405 "));
    CHECK(
        asked("POST /filter/adopt", "Host: evil.example\r\n", length).starts_with("HTTP/1.1 403 "));
  }
  admin.process.settings.admission.adopted_memory_bytes = 5 << 20;
  const std::string large = asked("POST /filter/adopt", right, kLarge);
  CHECK(large.starts_with("HTTP/1.1 413 "));
  CHECK(
      large.ends_with("A body of 100000000000 bytes, accepted: at most 7340032 bytes "
                      "(admission.adopted_memory)\n"));
  admin.process.settings.admission.adopted_memory_bytes = 0;
  const std::string none = asked("POST /filter/adopt", right, 1);
  CHECK(none.starts_with("HTTP/1.1 409 "));
  CHECK(none.find("admission.adopted_memory is 0") != std::string::npos);
  CHECK(asked("POST /purge", with(""), kLarge)
            .ends_with("A body of 100000000000 bytes, accepted: at most 1048576 bytes\n"));
  CHECK(asked("GET /purge", with(""), kLarge).starts_with("HTTP/1.1 405 "));
  CHECK(admin.process.handover.adopted.empty());
  CHECK(admin.process.orders.empty());
}

TEST_CASE("the memory of admission is for who has the token", "[process][admin]") {
  Admin admin;
  const auto with = [](std::string_view field) {
    return "Host: localhost\r\n" + std::string(field);
  };
  const std::string right = with("Authorization: Bearer 0123456789abcdef\r\n");
  SECTION("where none is configured it is nobody's") {
    CHECK(admin.answer("GET /filter", right).starts_with("HTTP/1.1 403 "));
    CHECK(admin.hear().find("admin.token_file") != std::string::npos);
    CHECK(admin.status("POST /filter/adopt", right) == 403);
  }
  SECTION("with it, it is given and taken") {
    admin.process.handover.secret = *Token::parse("0123456789abcdef");
    CHECK(admin.answer("GET /filter", right).ends_with("\r\n\r\nthe memory"));
    CHECK(admin.status("POST /filter/adopt", right) == 200);
    CHECK(admin.status("GET /filter", with("authorization: bearer 0123456789abcdef\r\n")) == 200);
    CHECK(admin.status("GET /filter/adopt", right) == 405);
    CHECK(admin.status("POST /filter", right) == 405);
    admin.process.handover.adoption =
        std::unexpected(AdoptRefusal{.damaged = true, .message = "torn"});
    CHECK(admin.answer("POST /filter/adopt", right).ends_with("400 Bad Request\ntorn\n"));
    admin.process.handover.adoption =
        std::unexpected(AdoptRefusal{.damaged = false, .message = "full"});
    CHECK(admin.answer("POST /filter/adopt", right).ends_with("409 Conflict\nfull\n"));
    admin.process.handover.takes = false;
    CHECK(admin.status("GET /filter", right) == 503);
    CHECK(admin.status("POST /filter/adopt", right) == 503);
    admin.process.settings.admission.policy = cache::AdmissionPolicy::kAlways;
    CHECK(admin.status("GET /filter", right) == 404);
  }
  SECTION("without it, or with anything else, it is not") {
    admin.process.handover.secret = *Token::parse("0123456789abcdef");
    const auto* field = GENERATE(
        "", "Authorization: Bearer 0123456789abcdeg\r\n",
        "Authorization: Bearer 0123456789abcde\r\n", "Authorization: Bearer 0123456789abcdef0\r\n",
        "Authorization: Bearer \r\n", "Authorization: 0123456789abcdef\r\n",
        "Authorization: Basic 0123456789abcdef\r\n", "Authorization: Bearer  0123456789abcdef\r\n",
        "Authorization: Bearer 0123456789abcdef\r\nAuthorization: Bearer x\r\n",
        "X-Token: Bearer 0123456789abcdef\r\n");
    CAPTURE(field);
    const std::string heard = admin.answer("GET /filter", with(field));
    CHECK(heard.starts_with("HTTP/1.1 401 "));
    CHECK(heard.find("\r\nWWW-Authenticate: Bearer\r\n") != std::string::npos);
    CHECK(admin.status("POST /filter/adopt", with(field)) == 401);
    CHECK(admin.process.handover.adopted.empty());
  }
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
    admin.process.dones[0]({.count = 7});
    const std::string heard = admin.hear();
    CHECK(heard.starts_with("HTTP/1.1 200 "));
    CHECK(heard.ends_with("{\"purged\": 7, \"soft\": true}\n"));
  }
  SECTION("what is read from disk goes as it is read") {
    admin.process.at_once = false;
    admin.ask("POST /purge?tag=a", "Host: localhost\r\n");
    CHECK(admin.hear([&] { return !admin.process.dones.empty(); }).empty());
    admin.process.dones[0]({.count = 7, .lazily = true});
    CHECK(
        admin.hear().ends_with("{\"purged\": 7, \"soft\": false, \"disk\": \"as it is read\"}\n"));
  }
  SECTION("a purge that a crash would undo is an error") {
    admin.process.at_once = false;
    admin.ask("POST /purge?tag=a", "Host: localhost\r\n");
    CHECK(admin.hear([&] { return !admin.process.dones.empty(); }).empty());
    admin.process.dones[0]({.count = 7, .durable = fail("/disk: no answer")});
    const std::string heard = admin.hear();
    CHECK(heard.starts_with("HTTP/1.1 500 "));
    CHECK(heard.ends_with("7 purged, but not for good: /disk: no answer\n"));
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

TEST_CASE("a request is explained as JSON, as text and on a page", "[process][admin][explain]") {
  Admin admin;
  const std::string query =
      "?url=http%3A%2F%2Fa.test%2F%3Cb%3E&method=HEAD&header=A%3A+1&header=B:2";
  const std::string json = admin.answer("GET /api/explain" + query);
  CHECK(json.find("Content-Type: application/json") != std::string::npos);
  CHECK(json.find("HEAD http://a.test/<b> of 127.0.0.1") != std::string::npos);
  const std::string text = admin.answer("GET /api/explain" + query + "&format=text");
  CHECK(text.find("request         HEAD http://a.test/<b> of 127.0.0.1\n"
                  "                A: 1\n"
                  "                B:2\n") != std::string::npos);
  const std::string page = admin.answer("GET /explain" + query);
  CHECK(page.find("Content-Security-Policy: default-src 'none'") != std::string::npos);
  CHECK(page.find("http://a.test/&lt;b&gt; of 127.0.0.1") != std::string::npos);
  CHECK(page.find("<b>") == std::string::npos);
  CHECK(admin.status("GET /explain") == 200);
  CHECK(admin.status("HEAD /api/explain?url=http://a/") == 200);
  CHECK(admin.status("GET /api/explain?url=nonsense") == 400);
  CHECK(admin.status("GET /api/explain?url=%") == 400);
  CHECK(admin.status("GET /api/explain?what=1") == 400);
  CHECK(admin.status("POST /api/explain?url=http://a/") == 405);
  CHECK(admin.status("GET /api/explain?url=http://a/", "Host: a.test\r\n") == 403);
}

TEST_CASE("what is simulated has a page and is no secret", "[process][admin][shadow]") {
  Admin admin;
  CHECK(admin.answer("GET /api/shadow").find("\"policies\": []") != std::string::npos);
  CHECK(admin.answer("GET /shadow").find("Nothing is simulated") != std::string::npos);
  CHECK(admin.status("POST /api/shadow") == 405);
}

}  // namespace
}  // namespace encore::server

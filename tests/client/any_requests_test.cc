// Any requests by any clients in any order, before an origin that answers all: each answer is a
// naive one's, and each record says of it what its client has heard.
#include <netinet/in.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <deque>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "tests/catch.h"
#include "tests/client/client_world.h"
#include "tests/client/http2_client.h"
#include "tests/coding/gunzipped.h"
#include "tests/letters.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

using Random = std::mt19937_64;

constexpr std::array<std::size_t, 6> kSizes = {0, 1, 700, 5'000, 40'000, 300'000};

// A path is a kind (fresh, validated, passed, chunked, missing), a number of kSizes, and a type
// (text, bytes): "/f3t".
struct Thing {
  explicit Thing(std::string_view path)
      : kind(path.at(1)),
        content(letters(kSizes.at(static_cast<std::size_t>(path.at(2) - '0')))),
        is_text(path.at(3) == 't'),
        tag("\"" + std::string(path.substr(1)) + "\"") {}
  char kind;
  std::string content;
  bool is_text;
  std::string tag;
};

// The value of a line of a head; empty: it has none.
std::string value_in(std::string_view head, std::string_view name) {
  const std::string begin = lower_ascii("\r\n" + std::string(name) + ": ");
  const std::size_t at = lower_ascii(head).find(begin);
  if (at == head.npos) return {};
  return std::string(head.substr(at + begin.size(), head.find("\r\n", at + 2) - at - begin.size()));
}

std::string answer_of_origin(std::string_view head) {
  const std::size_t path = head.find(' ') + 1;
  const Thing thing(head.substr(path, head.find(' ', path) - path));
  const bool is_head = head.starts_with("HEAD");
  std::string answer = "HTTP/1.1 200 OK\r\n";
  if (thing.kind == 'm') answer = "HTTP/1.1 404 Not Found\r\n";
  const bool is_confirmed = thing.kind != 'm' && value_in(head, "If-None-Match") == thing.tag;
  if (is_confirmed) answer = "HTTP/1.1 304 Not Modified\r\n";
  if (thing.kind == 'v') answer += "Cache-Control: no-cache\r\n";
  if (thing.kind == 'p') answer += "Cache-Control: no-store\r\n";
  if (thing.kind == 'f' || thing.kind == 'c') answer += "Cache-Control: max-age=600\r\n";
  if (thing.kind != 'm') answer += "ETag: " + thing.tag + "\r\n";
  if (is_confirmed) return answer + "\r\n";
  answer += std::string("Content-Type: ") + (thing.is_text ? "text/plain" : "image/png") + "\r\n";
  const std::string size = std::to_string(thing.content.size());
  if (thing.kind != 'c') {
    answer += "Content-Length: " + size + "\r\n\r\n";
    return is_head ? answer : answer + thing.content;
  }
  answer += "Transfer-Encoding: chunked\r\n\r\n";
  if (is_head) return answer;
  for (std::size_t at = 0; at < thing.content.size(); at += 7000) {
    const std::string piece = thing.content.substr(at, 7000);
    char begin[16];
    answer.append(begin, static_cast<std::size_t>(
                             std::snprintf(begin, sizeof begin, "%zx\r\n", piece.size())));
    answer += piece + "\r\n";
  }
  return answer + "0\r\n\r\n";
}

// Answers on any number of connections, as much at a time as their sockets take.
class EagerOrigin {
 public:
  EagerOrigin() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
    REQUIRE(::listen(listener_.get(), 64) == 0);
    socklen_t size = sizeof name;
    REQUIRE(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
    url = "http://127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  }
  void look() {
    for (int taken = -1; (taken = ::accept4(listener_.get(), nullptr, nullptr,
                                            SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
      connections_.emplace_back().socket = net::Socket(taken);
    }
    for (Connection& each : connections_) {
      char room[4096];
      ssize_t got = 0;
      while ((got = ::recv(each.socket.get(), room, sizeof room, 0)) > 0) {
        each.asked.append(room, static_cast<std::size_t>(got));
        received += static_cast<std::uint64_t>(got);
      }
      for (std::size_t end = 0; (end = each.asked.find("\r\n\r\n")) != std::string::npos;) {
        each.answer += answer_of_origin(each.asked.substr(0, end + 4));
        each.asked.erase(0, end + 4);
      }
      if (each.answer.empty()) continue;
      const ssize_t taken = ::send(each.socket.get(), each.answer.data(),
                                   std::min<std::size_t>(each.answer.size(), 32'000), MSG_NOSIGNAL);
      if (taken <= 0) continue;
      sent += static_cast<std::uint64_t>(taken);
      each.answer.erase(0, static_cast<std::size_t>(taken));
    }
  }

  std::string url;
  std::uint64_t received = 0;
  std::uint64_t sent = 0;

 private:
  struct Connection {
    net::Socket socket;
    std::string asked;
    std::string answer;
  };
  net::Socket listener_;
  std::deque<Connection> connections_;
};

struct AnyRequest {
  std::string method;
  std::string path;
  std::vector<std::pair<std::string, std::string>> fields;
  std::string field(std::string_view name) const {
    for (const auto& [own, value] : fields) {
      if (own == name) return value;
    }
    return {};
  }
};

AnyRequest any_request(Random& random) {
  AnyRequest made;
  made.method = random() % 6 == 0 ? "HEAD" : "GET";
  made.path = std::string("/") + "fvpcm"[random() % 5] +
              static_cast<char>('0' + random() % kSizes.size()) + "tb"[random() % 2];
  const Thing thing(made.path);
  const std::size_t size = thing.content.size();
  if (random() % 3 == 0) {
    const std::size_t begin = random() % (size + 2);
    const std::size_t end = begin + random() % (size + 2);
    std::string range = "bytes=" + std::to_string(begin) + "-" + std::to_string(end);
    if (random() % 4 == 0) range = "bytes=" + std::to_string(begin) + "-";
    if (random() % 4 == 0) range = "bytes=-" + std::to_string(begin + 1);
    made.fields.emplace_back("range", range);
  }
  if (random() % 5 == 0) {
    made.fields.emplace_back("if-none-match", random() % 2 == 0 ? thing.tag : "\"other\"");
  }
  if (random() % 2 == 0) made.fields.emplace_back("accept-encoding", "gzip");
  if (random() % 9 == 0) made.fields.emplace_back("cache-control", "no-cache");
  return made;
}

// An answer as a client has it; `bytes` of it in all, frames or chunks included.
struct AnyAnswer {
  int status = 0;
  std::string head;  // lines with CRLF in front
  std::string body;
  std::size_t bytes = 0;
};

void check_answer(const AnyRequest& request, const AnyAnswer& answer) {
  const Thing thing(request.path);
  const std::string range = request.field("range");
  CAPTURE(request.method, request.path, range, request.field("if-none-match"),
          request.field("accept-encoding"), answer.head);
  const bool is_head = request.method == "HEAD";
  if (is_head || answer.status == 304) REQUIRE(answer.body.empty());
  const std::string coding = value_in(answer.head, "Content-Encoding");
  if (thing.kind == 'm') {
    REQUIRE(answer.status == 404);
    if (!is_head && coding.empty()) REQUIRE((answer.body == thing.content));
    if (!is_head && !coding.empty()) REQUIRE((gunzipped(answer.body) == thing.content));
    return;
  }
  const bool is_known = request.field("if-none-match") == thing.tag;
  REQUIRE((answer.status == 304) == is_known);
  if (is_known) return;
  if (!coding.empty()) {
    REQUIRE(coding == "gzip");
    REQUIRE(request.field("accept-encoding") == "gzip");
    REQUIRE(thing.is_text);
    REQUIRE(answer.status == 200);
    REQUIRE(value_in(answer.head, "ETag") == "W/" + thing.tag);
    if (!is_head) REQUIRE((gunzipped(answer.body) == thing.content));
    return;
  }
  REQUIRE(value_in(answer.head, "ETag") == thing.tag);
  if (answer.status == 200) {
    if (!is_head) REQUIRE((answer.body == thing.content));
    const std::string length = value_in(answer.head, "Content-Length");
    REQUIRE((length.empty() || length == std::to_string(thing.content.size())));
    return;
  }
  REQUIRE_FALSE((range.empty() || is_head));
  const std::size_t size = thing.content.size();
  std::size_t begin = 0;
  std::size_t end = size;
  const std::size_t dash = range.find('-');
  if (dash == 6) {
    begin = size - std::min<std::size_t>(size, std::stoul(range.substr(7)));
  } else {
    begin = std::stoul(range.substr(6));
    if (dash + 1 != range.size()) end = std::min(size, std::stoul(range.substr(dash + 1)) + 1);
  }
  if (begin >= size) {
    REQUIRE(answer.status == 416);
    return;
  }
  REQUIRE(answer.status == 206);
  const std::string said = value_in(answer.head, "Content-Range");
  const std::string cut = "bytes " + std::to_string(begin) + "-" + std::to_string(end - 1) + "/";
  REQUIRE((said == cut + std::to_string(size) || said == cut + "*"));
  REQUIRE((answer.body == thing.content.substr(begin, end - begin)));
}

// --- clients ---

class AnyClient {
 public:
  virtual ~AnyClient() = default;
  virtual void ask(const AnyRequest& request, Random& random) = 0;
  // Between turns: says more, reads or not.
  virtual void go_on(Random& random) = 0;
  // Takes what is left, without delay.
  virtual void hurry() = 0;
  // All of what was asked, once it is there.
  virtual std::size_t answered() = 0;
  virtual std::vector<AnyAnswer> answers() = 0;

  std::vector<AnyRequest> asked;
};

class PlainClient final : public AnyClient {
 public:
  explicit PlainClient(ClientWorld& world) : client_(world) {}
  PlainClient(ClientWorld& world, Client::Narrow narrow) : client_(world, narrow) {}
  void ask(const AnyRequest& request, Random&) override {
    asked.push_back(request);
    unsaid_ += request.method + " " + request.path + " HTTP/1.1\r\nHost: a.example\r\n";
    for (const auto& [name, value] : request.fields) unsaid_ += name + ": " + value + "\r\n";
    unsaid_ += "\r\n";
  }
  void go_on(Random& random) override {
    const std::size_t bytes = std::min<std::size_t>(unsaid_.size(), random() % 400);
    client_.say(unsaid_.substr(0, bytes));
    unsaid_.erase(0, bytes);
    client_.reads = random() % 3 == 0;
  }
  void hurry() override {
    client_.reads = true;
    client_.say(unsaid_);
    unsaid_.clear();
  }
  std::size_t answered() override {
    parse();
    return answers_.size();
  }
  std::vector<AnyAnswer> answers() override {
    parse();
    CHECK(at_ == client_.heard.size());
    return answers_;
  }

 private:
  void parse() {
    const std::string_view heard = client_.heard;
    while (answers_.size() < asked.size()) {
      const std::size_t end = heard.find("\r\n\r\n", at_);
      if (end == heard.npos) return;
      AnyAnswer answer;
      answer.head = heard.substr(at_, end + 2 - at_);
      answer.status = std::stoi(answer.head.substr(9, 3));
      std::size_t at = end + 4;
      const std::string length = value_in(answer.head, "Content-Length");
      const bool has_none = asked[answers_.size()].method == "HEAD" || answer.status == 304;
      if (!has_none && !length.empty()) {
        answer.body = heard.substr(at, std::stoul(length));
        at += answer.body.size();
        if (answer.body.size() != std::stoul(length)) return;
      } else if (!has_none) {
        REQUIRE(value_in(answer.head, "Transfer-Encoding") == "chunked");
        for (std::size_t bytes = 1; bytes != 0;) {
          const std::size_t line = heard.find("\r\n", at);
          if (line == heard.npos) return;
          bytes = std::stoul(std::string(heard.substr(at, line - at)), nullptr, 16);
          if (heard.size() < line + 2 + bytes + 2) return;
          answer.body += heard.substr(line + 2, bytes);
          at = line + 2 + bytes + 2;
        }
      }
      answer.bytes = at - at_;
      at_ = at;
      answers_.push_back(std::move(answer));
    }
  }
  Client client_;
  std::string unsaid_;
  std::size_t at_ = 0;
  std::vector<AnyAnswer> answers_;
};

class StreamsClient final : public AnyClient {
 public:
  StreamsClient(ClientWorld& world, std::uint32_t window) : client_(world) {
    client_.greet(h2::test::setting(h2::Setting::kInitialWindowSize, window) +
                  h2::test::window(0, (1U << 31U) - 65536));
    is_ample_ = window >= 1'000'000;
  }
  void ask(const AnyRequest& request, Random&) override {
    h2::test::FieldList fields = h2::test::get(request.path, request.fields);
    fields.front().second = request.method;
    client_.say(h2::test::headers(id_of(asked.size()), fields));
    asked.push_back(request);
  }
  void go_on(Random& random) override {
    client_.reads = random() % 3 == 0;
    if (!is_ample_ && !asked.empty()) open(random() % asked.size(), 10'000);
  }
  void hurry() override {
    client_.reads = true;
    for (std::size_t i = 0; !is_ample_ && i < asked.size(); ++i) open(i, 1'000'000);
    is_ample_ = true;
  }
  std::size_t answered() override {
    std::size_t count = 0;
    for (const auto& frame : client_.frames()) {
      const bool ends =
          frame.header.type == h2::FrameType::kData || frame.header.type == h2::FrameType::kHeaders;
      if (ends && frame.header.has(h2::kFlagEndStream)) ++count;
    }
    return count;
  }
  std::vector<AnyAnswer> answers() override {
    std::vector<AnyAnswer> made(asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      CHECK(client_.has_end(id_of(i)));
      made[i].bytes = client_.bytes_of(id_of(i));
      made[i].body = client_.content(id_of(i));
    }
    for (const auto& frame : client_.frames()) {
      if (frame.fields.empty()) continue;
      AnyAnswer& answer = made.at((frame.header.stream - 1) / 2);
      answer.status = std::stoi(frame.fields.front().second);
      for (const auto& [name, value] : frame.fields) {
        answer.head += "\r\n" + name + ": " + value;
      }
      answer.head += "\r\n";
    }
    return made;
  }

 private:
  static h2::StreamId id_of(std::size_t number) {
    return static_cast<h2::StreamId>(2 * number + 1);
  }
  // Windows of streams that have ended may still be opened.
  void open(std::size_t number, std::uint32_t bytes) {
    client_.say(h2::test::window(id_of(number), bytes));
  }
  Http2Client client_;
  bool is_ample_ = false;
};

// Method, path, status, bytes of the content, and all.
using Line = std::tuple<std::string, std::string, int, std::size_t, std::size_t>;

TEST_CASE("any requests of any clients are answered as by a naive proxy, and recorded so",
          "[client][exchange][any]") {
  const auto seed = GENERATE(1U, 2U, 3U, 4U, 5U, 6U);
  const bool has_records = seed != 6;
  CAPTURE(seed);
  Random random(seed);
  const TemporaryDirectory directory;
  EagerOrigin origin;
  ClientWorld world(config::Mode::kReverse, [&](config::Config& config) {
    config.compression.codings = {"gzip"};
    config.origin.front().servers = {origin.url};
    config.limits.pipeline = 3;
    if (!has_records) return;
    config.log.access = directory / "log";
    config.log.format = "%X %s %B %m";
  });
  world.origin.loses_bytes = true;
  if (has_records) world.keep_records();
  std::vector<Line> heard;
  constexpr std::size_t kRequests = 120;
  {
    std::vector<std::unique_ptr<AnyClient>> clients;
    clients.push_back(std::make_unique<PlainClient>(world));
    clients.push_back(std::make_unique<PlainClient>(world, Client::Narrow{}));
    clients.push_back(std::make_unique<StreamsClient>(world, 1U << 24U));
    clients.push_back(std::make_unique<StreamsClient>(world, 1000U));
    for (std::size_t i = 0; i < kRequests; ++i) {
      clients[random() % clients.size()]->ask(any_request(random), random);
      for (std::size_t turn = random() % 6; turn != 0; --turn) {
        for (const auto& client : clients) client->go_on(random);
        origin.look();
        world.run_turns(1);
      }
    }
    for (const auto& client : clients) client->hurry();
    world.run_until([&] {
      origin.look();
      return std::ranges::all_of(
          clients, [](const auto& client) { return client->answered() == client->asked.size(); });
    });
    world.run_until([&] { return world.records() == kRequests; });
    world.origin.received_bytes = origin.received;
    world.origin.sent_bytes = origin.sent;
    for (const auto& client : clients) {
      const std::vector<AnyAnswer> answers = client->answers();
      REQUIRE(answers.size() == client->asked.size());
      for (std::size_t i = 0; i < answers.size(); ++i) {
        const AnyRequest& request = client->asked[i];
        const AnyAnswer& answer = answers[i];
        check_answer(request, answer);
        heard.emplace_back(request.method, request.path, answer.status, answer.body.size(),
                           answer.bytes);
      }
    }
  }
  std::uint64_t bytes = 0;
  std::uint64_t content = 0;
  for (const Line& line : heard) {
    content += std::get<3>(line);
    bytes += std::get<4>(line);
  }
  CHECK(world.world.stats.bytes_to_clients.get() == bytes);
  CHECK(world.world.stats.body_bytes() == content);
  if (!has_records) return;
  std::vector<Line> recorded;
  for (std::size_t i = 0; i < kRequests; ++i) {
    const auto record = world.record(i);
    const std::string url = record["url"];
    recorded.emplace_back(record["method"], url.substr(url.rfind('/')), record["status"],
                          record["body_bytes"], record["bytes"]);
    CHECK(record["first_byte_us"] <= record["duration_us"]);
    CHECK(record["client"] == "127.0.0.1");
    const std::string outcome = record["outcome"];
    const bool asks = record.contains("origin");
    CAPTURE(record);
    if (outcome == "hit") CHECK_FALSE(asks);
    if (outcome == "admitted" || outcome == "uncacheable" || outcome == "revalidated") CHECK(asks);
  }
  // Each connection went on behind each answer.
  world.write_log();
  std::vector<std::string> lines;
  std::vector<std::string> expected;
  std::ifstream file(directory / "log");
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  for (const auto& [method, path, status, body, all] : heard) {
    expected.push_back("+ " + std::to_string(status) + " " + std::to_string(body) + " " + method);
  }
  std::ranges::sort(lines);
  std::ranges::sort(expected);
  CHECK(lines == expected);
  std::ranges::sort(heard);
  std::ranges::sort(recorded);
  CHECK((heard == recorded));
  for (std::size_t i = 0; i < kRequests; ++i) {
    const auto& [method, path, status, body, all] = heard[i];
    CAPTURE(method, path, status, body, all);
    REQUIRE(recorded[i] == heard[i]);
  }
}

}  // namespace
}  // namespace encore::server

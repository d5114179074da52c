// The log says of each answer whether its client's connection went on behind it, ended, or was cut
// within it.
#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.h"
#include "tests/client/client_world.h"
#include "tests/client/http2_client.h"
#include "tests/letters.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

struct ConnectionLog {
  ConnectionLog()
      : world(config::Mode::kReverse,
              [&](config::Config& config) {
                config.log.access = directory / "log";
                config.log.format = "%X %s";
              }),
        filler(world) {
    world.keep_records();
    store("/hit", 1000);
    store("/large", 300'000);
  }
  void store(std::string_view path, std::size_t bytes) {
    const std::uint64_t before = world.records();
    filler.say("GET " + std::string(path) + " HTTP/1.1\r\nHost: a.example\r\n\r\n");
    world.run_until_asked();
    answer("max-age=60", bytes);
    world.run_until([&] { return world.records() == before + 1; });
  }
  void answer(std::string_view cache_control, std::size_t bytes) {
    world.answer("HTTP/1.1 200 OK\r\nCache-Control: " + std::string(cache_control) +
                 "\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n" + letters(bytes));
  }
  // The latest lines of the log, behind those of what was stored.
  std::vector<std::string> lines() {
    world.write_log();
    std::vector<std::string> all;
    std::ifstream file(directory / "log");
    for (std::string line; std::getline(file, line);) all.push_back(line);
    REQUIRE(all.size() >= 2);
    all.erase(all.begin(), all.begin() + 2);
    return all;
  }

  const TemporaryDirectory directory;
  ClientWorld world;
  Client filler;
};

enum class Answer : std::uint8_t { kHit, kLarge, kMiss, kOwn, kRefused };
constexpr auto kAnswers = {Answer::kHit, Answer::kLarge, Answer::kMiss, Answer::kOwn,
                           Answer::kRefused};

TEST_CASE("the log says whether a connection goes on behind an answer", "[client][log]") {
  const auto which = GENERATE(values<Answer>(kAnswers));
  const bool closes = GENERATE(true, false);
  const bool is_behind = GENERATE(true, false);
  CAPTURE(static_cast<int>(which), closes, is_behind);
  ConnectionLog log;
  Client client(log.world);
  std::string path = "/hit";
  std::string fields;
  std::string status = "200";
  if (which == Answer::kLarge) path = "/large";
  if (which == Answer::kMiss) path = "/miss";
  if (which == Answer::kOwn) {
    path = "/none";
    fields = "Cache-Control: only-if-cached\r\n";
    status = "504";
  }
  if (which == Answer::kRefused) {
    fields = "Expect: tea\r\n";
    status = "417";
  }
  if (closes) fields += "Connection: close\r\n";
  const std::string first = is_behind ? "GET /hit HTTP/1.1\r\nHost: a.example\r\n\r\n" : "";
  client.say(first + "GET " + path + " HTTP/1.1\r\nHost: a.example\r\n" + fields + "\r\n");
  if (which == Answer::kMiss) {
    log.world.run_until_asked();
    log.answer("no-store", 5);
  }
  log.world.run_until([&] { return log.world.records() == (is_behind ? 4 : 3); });
  log.world.run_turns(10);
  CHECK(client.ended == closes);
  std::vector<std::string> expected;
  if (is_behind) expected.emplace_back("+ 200");
  expected.push_back((closes ? "- " : "+ ") + status);
  // Those of one turn are in any order.
  std::vector<std::string> lines = log.lines();
  std::ranges::sort(lines);
  std::ranges::sort(expected);
  CHECK(lines == expected);
}

TEST_CASE("the log says that an answer was cut", "[client][log]") {
  const auto which = GENERATE(Answer::kHit, Answer::kLarge, Answer::kMiss);
  const bool is_http2 = GENERATE(true, false);
  CAPTURE(static_cast<int>(which), is_http2);
  ConnectionLog log;
  std::optional<Client> client;
  std::optional<Http2Client> streams;
  const std::string path = which == Answer::kHit     ? "/hit"
                           : which == Answer::kLarge ? "/large"
                                                     : "/miss";
  if (is_http2) {
    streams.emplace(log.world);
    streams->greet(h2::test::setting(h2::Setting::kInitialWindowSize, 1));
    streams->ask(1, path);
  } else {
    client.emplace(log.world, Client::Narrow{});
    client->reads = false;
    std::string asked = "GET " + path + " HTTP/1.1\r\nHost: a.example\r\n\r\n";
    // Hits that are gathered, more than the kernel takes.
    const std::string one = asked;
    for (int i = 0; which == Answer::kHit && i < 40; ++i) asked += one;
    client->say(asked);
  }
  if (which == Answer::kMiss) {
    log.world.run_until_asked();
    log.world.origin.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nten bytes.");
  }
  log.world.run_turns(30);
  (is_http2 ? streams->connection() : client->connection()).cut();
  log.world.run_turns(5);
  const std::vector<std::string> lines = log.lines();
  CHECK(std::ranges::count(lines, "X 200") >= 1);
  CHECK(std::ranges::count(lines, "+ 200") + std::ranges::count(lines, "X 200") ==
        static_cast<std::ptrdiff_t>(lines.size()));
}

TEST_CASE("the log says that a connection of HTTP/2 goes on behind each answer",
          "[client][log][http2]") {
  const auto which = GENERATE(values<Answer>(kAnswers));
  CAPTURE(static_cast<int>(which));
  ConnectionLog log;
  Http2Client client(log.world);
  constexpr std::uint32_t kAll = 1U << 24U;
  client.greet(h2::test::setting(h2::Setting::kInitialWindowSize, kAll) +
               h2::test::window(0, kAll));
  std::string path = "/hit";
  h2::test::FieldList more;
  std::string status = "200";
  if (which == Answer::kLarge) path = "/large";
  if (which == Answer::kMiss) path = "/miss";
  if (which == Answer::kOwn) {
    path = "/none";
    more = {{"cache-control", "only-if-cached"}};
    status = "504";
  }
  if (which == Answer::kRefused) {
    more = {{"expect", "tea"}};
    status = "417";
  }
  client.ask(1, path, more);
  if (which == Answer::kMiss) {
    log.world.run_until_asked();
    log.answer("no-store", 5);
  }
  log.world.run_until([&] { return client.has_end(1) && log.world.records() == 3; });
  CHECK(log.lines() == std::vector<std::string>{"+ " + status});
}

}  // namespace
}  // namespace encore::server

// Writes to a client that fail, or find no room, at any place of a connection: whichever it is,
// each request is recorded once, and what is heard is the beginning of what would have been.
#include "proxy/client/http1_connection.h"

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.h"
#include "tests/client/client_world.h"
#include "tests/letters.h"

namespace encore::server {
namespace {

std::string ask_for(std::string_view path, std::string_view fields = {}) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n";
}
std::string answer_of(std::string_view cache_control, std::string_view body) {
  return "HTTP/1.1 200 OK\r\nCache-Control: " + std::string(cache_control) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

// One that has /small and /large stored, and whose origin answers everything else.
struct Writing {
  explicit Writing(bool has_records)
      : world(config::Mode::kReverse,
              [=](config::Config& config) {
                config.listen.front().deny_paths = {"/denied"};
                if (has_records) config.log.level = config::LogLevel::kDebug;
              }),
        filler(world) {
    fill("/small", letters(2000));
    fill("/large", letters(300'000));
    records_before = world.records();
  }
  void fill(std::string_view path, const std::string& body) {
    const std::uint64_t before = world.records();
    filler.say(ask_for(path));
    world.run_until_asked();
    world.answer(answer_of("max-age=60", body));
    world.run_until([&] { return world.records() == before + 1; });
  }
  void serve(int turns) {
    for (int i = 0; i < turns; ++i) {
      world.run_turns(1);
      if (world.origin.asked.find("\r\n\r\n") != std::string::npos) {
        world.origin.say(answer_of("no-store", "miss"));
      }
    }
  }

  ClientWorld world;
  Client filler;
  std::uint64_t records_before = 0;
};

struct Pipeline {
  std::string said;
  std::uint64_t requests;
  bool ends;  // its client, behind them
};

// All of it without a failure.
std::string heard_of(const Pipeline& pipeline, bool has_records) {
  Writing w(has_records);
  Client client(w.world);
  const std::uint64_t bytes_before = w.world.world.stats.bytes_to_clients.get();
  client.say(pipeline.said);
  if (pipeline.ends) client.end();
  w.world.run_until([&] {
    w.serve(1);
    return w.world.records() - w.records_before == pipeline.requests &&
           client.heard.size() == w.world.world.stats.bytes_to_clients.get() - bytes_before &&
           client.is_over() == pipeline.ends;
  });
  return client.heard;
}

// Without what differs from one run to another.
std::string without_dates(std::string text) {
  for (const std::string_view name : {"\r\nDate: ", "\r\nAge: ", "\r\nCache-Status: "}) {
    for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; ++at) {
      text.erase(at, text.find("\r\n", at + 2) - at);
    }
  }
  return text;
}

Pipeline some_pipeline() {
  const std::string small = ask_for("/small");
  return GENERATE_COPY(values<Pipeline>({
      {small + small + ask_for("/miss") + small + "GET /half", 4, true},
      {small + ask_for("/large") + small, 3, false},
      {small + ask_for("/denied") + small, 3, false},
      {small + "nothing\r\n\r\n", 2, true},
      {ask_for("/small", "Connection: close\r\n") + small, 1, true},
  }));
}

TEST_CASE("a write for which there is no room makes no difference, whichever it is",
          "[client][connection]") {
  const Pipeline pipeline = some_pipeline();
  const bool has_records = GENERATE(true, false);
  const std::string expected = heard_of(pipeline, has_records);
  for (int nth = 0;; ++nth) {
    CAPTURE(pipeline.said, has_records, nth);
    Writing w(has_records);
    Client client(w.world);
    const net::FailCalls full(net::FailCalls::Call::kSend, nth, EAGAIN);
    client.say(pipeline.said);
    if (pipeline.ends) client.end();
    w.world.run_until([&] {
      w.serve(1);
      return w.world.records() - w.records_before == pipeline.requests &&
             without_dates(client.heard).size() >= without_dates(expected).size() &&
             client.is_over() == pipeline.ends;
    });
    CHECK((without_dates(client.heard) == without_dates(expected)));
    CHECK(client.is_over() == pipeline.ends);
    CHECK_FALSE(client.was_reset);
    CHECK(w.world.heads.count() == 0);
    if (!full.failed()) break;
    REQUIRE(nth < 20);
  }
}

TEST_CASE("a connection ends with the write that fails, and each of its requests is recorded once",
          "[client][connection]") {
  const Pipeline pipeline = some_pipeline();
  const bool has_records = GENERATE(true, false);
  for (int nth = 0;; ++nth) {
    CAPTURE(pipeline.said, has_records, nth);
    Writing w(has_records);
    Client client(w.world);
    const std::uint64_t bytes_before = w.world.world.stats.bytes_to_clients.get();
    const net::FailCalls broken(net::FailCalls::Call::kSend, nth, EPIPE);
    client.say(pipeline.said);
    if (pipeline.ends) client.end();
    w.serve(40);
    if (!broken.failed()) break;
    REQUIRE(nth < 20);
    const std::uint64_t recorded = w.world.records() - w.records_before;
    CHECK(recorded <= pipeline.requests);
    // That write may have been one to the origin.
    const bool is_over = w.world.connections() == 1;
    CHECK((is_over || recorded == pipeline.requests));
    CHECK((is_over || client.is_over() == pipeline.ends));
    CHECK(w.world.heads.count() == 0);
    CHECK(client.heard.size() <= w.world.world.stats.bytes_to_clients.get() - bytes_before);
  }
}

}  // namespace
}  // namespace encore::server

// An exchange on one thread, whose client and origins the test plays.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/exchange/exchange.h"
#include "proxy/observe/request_tap.h"
#include "tests/catch.h"
#include "tests/exchange/some_request.h"

namespace encore::server {

// A client that takes what it is given, and says what the test wants to hear.
class FakeStream final : public ClientStream {
 public:
  void send_interim(std::string_view head) override { interim += head; }
  void begin(Response given, BodyReader& from) override {
    CHECK_FALSE((begun || ended || switched));
    begun = true;
    response = std::move(given);
    content = &from;
  }
  ClientStream::Status pump() override {
    CHECK_FALSE(ended);
    return status;
  }
  void end(ClientStream::End how) override {
    CHECK_FALSE(ended);
    ended = how;
  }
  void switch_protocol(SwitchedConnection given) override {
    CHECK_FALSE((begun || ended));
    switched = std::move(given);
  }
  void want_content() override { ++wanted; }
  std::uint64_t sent_bytes() const override { return response.head.size(); }
  std::uint64_t taken_bytes() const override { return taken; }
  bool has_taken_all() const override { return true; }
  std::uint64_t unsent_bytes() const override { return unsent; }
  Nanoseconds round_trip() const override { return trip; }
  bool is_kept() const override { return kept; }
  bool is_over_share() const override { return false; }

  std::string interim;
  bool begun = false;
  Response response;
  BodyReader* content = nullptr;
  ClientStream::Status status = ClientStream::Status::kDone;
  std::optional<ClientStream::End> ended;
  std::optional<SwitchedConnection> switched;
  int wanted = 0;
  std::uint64_t taken = 0;
  std::uint64_t unsent = 0;
  bool kept = true;
  Nanoseconds trip{};
};

// Keeps what it is asked.
class FakeOrigins final : public OriginFetcher {
 public:
  void start_fetch(std::shared_ptr<Transfer> transfer,
                   std::shared_ptr<const RequestContext> request, OriginFetchOptions ask) override {
    transfers.push_back(std::move(transfer));
    requests.push_back(std::move(request));
    asks.push_back(std::move(ask));
  }
  std::vector<std::shared_ptr<Transfer>> transfers;
  std::vector<std::shared_ptr<const RequestContext>> requests;
  std::vector<OriginFetchOptions> asks;
};

struct ExchangeFixture {
  explicit ExchangeFixture(std::string_view text, const config::Config& config = {},
                           const CacheView& found = {})
      : loop(*net::Loop::create()),
        home(*loop),
        runtime(some_runtime(config)),
        cache(*loop, kernel, latest, runtime),
        loads({.loop = *loop,
               .disks = disks,
               .store = store,
               .kernel = kernel,
               .inflight = inflight,
               .resident = nullptr}),
        log(*loop, stats, nullptr, runtime, {.tap = &tap}),
        turn(home),
        services{.loop = *loop,
                 .kernel = kernel,
                 .inflight = inflight,
                 .stats = stats,
                 .cache = cache,
                 .log = log,
                 .home = home,
                 .origins = origins,
                 .loads = loads,
                 .rechecks = rechecks},
        request(some_request(text, runtime)),
        exchange(std::make_unique<Exchange>(services, stream, request, found)) {
    tap.set_on(true);
    log.hand_over();
  }
  // However it ends, it is recorded once, as its client saw it, and leaves all that it has asked
  // for.
  ~ExchangeFixture() {
    std::uint64_t records = 0;
    for (const Counter& each : stats.requests) records += each.get();
    CHECK(records <= 1);
    CHECK(tap.next() == records);
    CHECK((records == 1 || !stream.ended));
    CHECK((records == 0 || !stream.switched));
    if (stream.ended) CHECK(stats.bytes_to_clients.get() == stream.sent_bytes());
    if (records == 1 && tap.next() == 1) check_record();
    exchange.reset();
    for (const auto& transfer : origins.transfers) CHECK_FALSE(transfer->has_readers());
  }
  ExchangeFixture(const ExchangeFixture&) = delete;
  ExchangeFixture& operator=(const ExchangeFixture&) = delete;
  std::uint64_t ended_as(Outcome outcome) const {
    return stats.requests[static_cast<std::size_t>(outcome)].get();
  }

  // The one that was made, as the access log has it.
  nlohmann::json record() const {
    const auto batch = tap.take(0, 1);
    REQUIRE(batch.lines.size() == 1);
    return nlohmann::json::parse(batch.lines[0]);
  }
  // The detail of the record of the one request that has ended so.
  std::string reason_of(Outcome outcome) const {
    OutcomeReport report;
    stats.recent.add_to(report, outcome);
    REQUIRE(report.reasons.size() == 1);
    return report.reasons[0].name;
  }

  const MonotonicTime begun = monotonic_now();
  std::unique_ptr<net::Loop> loop;
  TransferHome home;
  std::shared_ptr<const Runtime> runtime;
  std::unique_ptr<cache::Kernel> kernel;  // none: nothing here is looked up
  LamportClock latest;
  Inflight inflight;
  WorkerStats stats;
  CacheLookup cache;
  std::unique_ptr<store::Store> store;  // none
  std::unique_ptr<disk::Disks> disks;   // likewise
  DiskLoads loads;
  filter::Seed seed{1, 2};
  AuthorizationCache rechecks{seed};
  RequestTap tap;
  RequestLog log;
  TransferHome::Turn turn;
  FakeOrigins origins;
  FakeStream stream;
  ExchangeServices services;
  std::shared_ptr<const RequestContext> request;
  std::unique_ptr<Exchange> exchange;

 private:
  void check_record() const {
    const nlohmann::json made = record();
    const std::string& head = stream.response.head;
    CHECK(made["status"] == (stream.begun ? std::stoi(head.substr(head.find(' '))) : 0));
    CHECK(made["bytes"] == stats.bytes_to_clients.get());
    CHECK(made["body_bytes"] <= made["bytes"]);
    CHECK(made["request_bytes"] >= request->head.head_size);
    CHECK(made["method"] == request->head.method_text);
    CHECK(made["client"] == "127.0.0.1");
    const auto lasted =
        std::chrono::duration_cast<std::chrono::microseconds>(monotonic_now() - begun);
    CHECK(made["duration_us"] <= lasted.count());
    CHECK(made["first_byte_us"] <= made["duration_us"]);
    // An answer of our own says the same to both.
    const std::string detail = made.value("detail", "");
    if (made["status"] >= 400 && head.contains("; detail=") &&
        made["outcome"] != "client-aborted") {
      CHECK(head.contains("; detail=" + detail));
    }
  }
};

}  // namespace encore::server

#include "proxy/process/server.h"

#include <pthread.h>

#include <csignal>
#include <filesystem>

#include "cache/journal.h"
#include "proxy/net/listener.h"
#include "proxy/net/signals.h"
#include "proxy/net/socket.h"
#include "proxy/net/socket_options.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

config::Config some_config() {
  config::Config config;
  config.listen = {{.address = "127.0.0.1:0", .mode = config::Mode::kForward}};
  config.admin.address.clear();
  config.cache.memory_bytes = 8 * kMiB;
  config.cache.shards = 1;
  config.workers.count = 2;
  config.log.level = config::LogLevel::kOff;
  return config;
}

// Signals that come before a server runs are its own once it does.
class HeldSignals {
 public:
  HeldSignals() {
    ::pthread_sigmask(SIG_SETMASK, nullptr, &before_);
    net::hold_signals({SIGTERM, SIGINT, SIGHUP, SIGUSR1});
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

std::unique_ptr<Server> made(const config::Config& config, Server::LoadConfig load = {}) {
  auto server = Server::create(config, std::move(load));
  INFO((server ? std::string() : server.error().message));
  REQUIRE(server.has_value());
  return std::move(*server);
}

std::string refused(const config::Config& config) {
  auto server = Server::create(config, {});
  REQUIRE_FALSE(server.has_value());
  return server.error().message;
}

// Runs from start to end, for the signal to end comes first.
void run_to_end(const config::Config& config, Server::LoadConfig load = {}) {
  const HeldSignals held;
  const auto server = made(config, std::move(load));
  REQUIRE(::raise(SIGTERM) == 0);
  server->run();
}

TEST_CASE("a server that is told to end saves what it knows and ends", "[server][process]") {
  const TemporaryDirectory place;
  config::Config config = some_config();
  config.state.directory = place / "state";
  run_to_end(config);
  const auto state = StateDirectory::open(place / "state");  // nobody holds it any more
  REQUIRE(state.has_value());
  const auto seed = state->load_seed();
  REQUIRE((seed && *seed));
  const auto admission = state->load_admission();
  REQUIRE((admission && *admission));
  CHECK_FALSE((*admission)->empty());
}

TEST_CASE("the seed lasts over restarts, and a configured one takes its place",
          "[server][process]") {
  const TemporaryDirectory place;
  config::Config config = some_config();
  config.state.directory = place / "state";
  const auto kept = [&] {
    const auto state = StateDirectory::open(place / "state");
    REQUIRE(state.has_value());
    const auto seed = state->load_seed();
    REQUIRE((seed && *seed));
    return filter::to_hex(**seed);
  };
  run_to_end(config);
  const std::string first = kept();
  run_to_end(config);
  CHECK(kept() == first);
  config.admission.seed = "0123456789abcdef0123456789abcdef";
  run_to_end(config);
  CHECK(kept() == config.admission.seed);
  // Memory under another seed is of no use, and no reason not to start.
  config.admission.seed = "00000000000000000000000000000007";
  run_to_end(config);
  CHECK(kept() == config.admission.seed);
}

TEST_CASE("damaged state is left behind, and a server starts without", "[server][process]") {
  const TemporaryDirectory place;
  config::Config config = some_config();
  config.state.directory = place / "state";
  {
    const auto state = StateDirectory::open(place / "state");
    REQUIRE(state.has_value());
    REQUIRE(state->save_admission("no filter").has_value());
  }
  run_to_end(config);
  const auto state = StateDirectory::open(place / "state");
  REQUIRE(state.has_value());
  const auto admission = state->load_admission();
  REQUIRE((admission && *admission));
  CHECK(**admission != "no filter");
}

TEST_CASE("a server holds its state alone", "[server][process]") {
  const TemporaryDirectory place;
  config::Config config = some_config();
  config.state.directory = place / "state";
  const auto first = made(config);
  CHECK(refused(config).find(place / "state") != std::string::npos);
}

TEST_CASE("a reload reads the config once, and a bad one changes nothing", "[server][process]") {
  for (const bool good : {true, false}) {
    CAPTURE(good);
    const config::Config config = some_config();
    int loads = 0;
    const HeldSignals held;
    const auto server = made(config, [&]() -> Result<config::Config> {
      ++loads;
      if (!good) return fail("encore.toml:1: no such key");
      return config;
    });
    // The lower number comes first.
    REQUIRE(::raise(SIGHUP) == 0);
    REQUIRE(::raise(SIGTERM) == 0);
    server->run();
    CHECK(loads == 1);
  }
}

TEST_CASE("a journal of decisions begins anew with each server", "[server][process]") {
  const TemporaryDirectory place;
  config::Config config = some_config();
  config.log.decisions = place / "decisions";
  write_text(place / "decisions", "of an earlier run");
  run_to_end(config);
  const std::string first = read_text(place / "decisions");
  CHECK(first.find("earlier") == std::string::npos);
  REQUIRE_FALSE(first.empty());
  run_to_end(config);
  // One head each time, not one behind the other.
  CHECK(read_text(place / "decisions").size() == first.size());
}

TEST_CASE("what keeps a server from its start is named", "[server][process]") {
  const auto taken =
      net::listen_on(net::Address::parse_ip("127.0.0.1", 0).value(), 1, net::SharePort::kNo);
  REQUIRE(taken.has_value());
  const std::string address = net::bound_address(*taken).to_string();
  const TemporaryDirectory place;
  config::Config config = some_config();
  config.listen[0].address = address;
  CHECK(refused(config).find(address) != std::string::npos);
  config = some_config();
  config.admin.address = {address};
  CHECK(refused(config).find(address) != std::string::npos);
  config = some_config();
  config.log.access = place / "missing/access.log";
  CHECK(refused(config).find(config.log.access) != std::string::npos);
  config = some_config();
  config.upstream.tls_ca_file = place / "missing.pem";
  CHECK(refused(config).find(config.upstream.tls_ca_file) != std::string::npos);
}

}  // namespace
}  // namespace encore::server

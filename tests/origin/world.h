// A world for one fetch: all that OriginServices names, with one thread and no worker, and origins
// that the test plays itself on loopback sockets.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/payload_owner.h"
#include "proxy/disk/disks.h"
#include "proxy/http/parser.h"
#include "proxy/origin/fetch.h"
#include "proxy/settings/names.h"
#include "proxy/store/memory_store.h"
#include "proxy/transfer/transfer_home.h"
#include "tests/catch.h"
#include "tests/net/full_backlog.h"
#include "tests/net/reset.h"

namespace encore::server {

// An origin: the test reads what it is asked, and writes what it answers.
class Origin {
 public:
  Origin() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0);
    REQUIRE(::listen(listener_.get(), 16) == 0);
    socklen_t size = sizeof(name);
    REQUIRE(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
    port_ = ntohs(name.sin_port);
  }
  std::uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // Takes a connection that waits; false: there is none.
  bool accept() {
    if (!fillers_.empty()) return false;
    const int taken = ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (taken < 0) return false;
    connection_ = net::Socket(taken);
    asked.clear();
    ended = was_reset = false;
    ++accepted;
    return true;
  }
  // Reads what is there, of the connection that was taken last; takes one where there is none.
  void look() {
    (void)accept();
    if (!connection_ || ended || was_reset) return;
    char room[4096];
    ssize_t got = 0;
    while ((got = ::recv(connection_.get(), room, sizeof(room), 0)) > 0) {
      asked.append(room, static_cast<std::size_t>(got));
    }
    ended = got == 0;
    was_reset = got < 0 && errno == ECONNRESET;
  }
  void say(std::string_view text) {
    asked.clear();
    REQUIRE(::send(connection_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()));
  }
  // Ends its side of the connection.
  void end() { REQUIRE(::shutdown(connection_.get(), SHUT_WR) == 0); }
  // Says what the connection takes of it; how much that was.
  std::size_t offer(std::string_view text) {
    const ssize_t taken = ::send(connection_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    return taken < 0 ? 0 : static_cast<std::size_t>(taken);
  }
  void close() { connection_ = net::Socket(); }
  void reset() { net::reset_connection(connection_); }
  void stop_listening() { listener_ = net::Socket(); }
  // From now on no connection to it comes about.
  void fall_silent() { fillers_ = net::fill_backlog(listener_); }

  std::string asked;  // since it has answered last
  int accepted = 0;
  bool ended = false;  // by its peer
  bool was_reset = false;

 private:
  net::Socket listener_;
  net::Socket connection_;
  std::vector<net::Socket> fillers_;
  std::uint16_t port_ = 0;
};

class World final : public FetchKeeper,
                    public MemoryReclaim,
                    public WorkerNow,
                    public cache::PayloadOwner,
                    public cache::Observer {
 public:
  // A world of a reverse listener in front of these servers.
  explicit World(std::vector<std::string> servers,
                 const std::function<void(config::Config&)>& change = {},
                 const std::function<void(cache::KernelOptions&)>& cache = {}) {
    auto made = net::Loop::create();
    REQUIRE(made.has_value());
    loop = std::move(*made);
    home = std::make_unique<TransferHome>(*loop);
    turn_ = std::make_unique<TransferHome::Turn>(*home);
    auto memory = store::make_memory_store({.limit_bytes = 64U << 20U});
    REQUIRE(memory.has_value());
    store = std::move(*memory);
    cache::KernelOptions options;
    options.capacity_bytes = 16U << 20U;
    options.admission.policy = cache::AdmissionPolicy::kAlways;
    if (cache) cache(options);
    auto decides = cache::Kernel::create(options, {.owner = this, .observer = this}, {});
    REQUIRE(decides.has_value());
    kernel = std::move(*decides);
    config::Config config;
    config::Origin origin;
    origin.host = "*";
    origin.path = "/";
    origin.servers.assign(servers.begin(), servers.end());
    config.origin = {origin};
    if (change) change(config);
    auto run = Runtime::create(config, {}, "test");
    REQUIRE(run.has_value());
    runtime = *run;
    auto names = net::Resolver::create(*loop, resolver_options(config.upstream));
    REQUIRE(names.has_value());
    resolver = std::move(*names);
    services = std::make_unique<OriginServices>(OriginServices{.loop = *loop,
                                                               .resolver = *resolver,
                                                               .pool = pool,
                                                               .lines = lines,
                                                               .warnings = warnings,
                                                               .forward_warnings = warnings,
                                                               .store = *store,
                                                               .kernel = *kernel,
                                                               .inflight = inflight,
                                                               .latest_moment = latest_moment,
                                                               .old_servers = old_servers,
                                                               .stats = stats,
                                                               .identity_seed = seed,
                                                               .keeper = *this,
                                                               .relief = *this,
                                                               .worker = *this});
  }
  ~World() {
    while (!fetches.empty()) fetches.back()->abandon();
    retired_.clear();
    pool.close_all();
    run_turn();
    services.reset();
    kernel.reset();
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // --- FetchKeeper, MemoryReclaim, WorkerNow, PayloadOwner, Observer ---
  void keep(std::unique_ptr<Fetch> fetch) override { fetches.push_back(std::move(fetch)); }
  void retire(Fetch& fetch) override {
    for (auto it = fetches.begin(); it != fetches.end(); ++it) {
      if (it->get() != &fetch) continue;
      retired_.push_back(std::move(*it));
      fetches.erase(it);
      return;
    }
    FAIL("a fetch is retired that was not kept");
  }
  bool make_room() override { return relieve && relieve(); }
  bool make_room_at_once() override { return relieve && relieve(); }
  void wait_for_room() override { ++waits_for_room; }
  const Runtime& present_runtime() const override { return *runtime; }
  bool is_draining() const override { return draining; }
  bool logs_requests() const override { return true; }
  std::size_t idle_connections_max() const override { return 100; }
  bool give_up_idle() override { return false; }
  // Returns the latest of the variants of a key.
  CacheView lookup(const RequestContext& request) override {
    struct First final : public cache::Selector {
      bool matches(cache::Payload payload) override {
        found = store::ObjectRef::share(payload);
        return true;
      }
      store::ObjectRef found;
    } first;
    const auto result = kernel->lookup(cache::Key{request.hash, request.key}, loop->now(), first);
    return {.object = std::move(first.found),
            .disk = {},
            .any_resident = result.any_resident,
            .fresh_until = result.fresh_until};
  }
  void release(std::span<const cache::Payload> payloads) override { store->release(payloads); }
  void record(const cache::Event& event) override {
    if (on_decision) on_decision(event);
  }

  void run_turn() {
    loop->stop();
    loop->run();
    retired_.clear();
  }
  // Runs, and lets the origin look, until `done` holds.
  void run_until(Origin& origin, const std::function<bool()>& done) {
    for (int turn = 0; turn < 3000 && !done(); ++turn) {
      run_turn();
      origin.look();
      if (turn > 20) ::usleep(1000);
    }
    REQUIRE(done());
  }
  // Until the origin was asked something whole.
  void run_until_asked(Origin& origin) {
    run_until(origin, [&] { return origin.asked.find("\r\n\r\n") != std::string::npos; });
  }

  std::shared_ptr<const RequestContext> request(const std::string& text) {
    http::RequestHead head;
    http::ParseError error;
    REQUIRE(http::parse_request(text, {}, head, error) == http::ParseStatus::kComplete);
    RequestView view;
    view.head = &head;
    view.framing = http::request_framing(head);
    REQUIRE(http::resolve_target(head, http::Scheme::kHttp, view.target) ==
            http::TargetStatus::kOk);
    view.route = runtime->router.match("", view.target.path);
    REQUIRE(view.route != nullptr);
    std::string uri(http::key_bytes_max(view.target), '\0');
    view.uri = http::write_key(view.target, runtime->reverse.keys, uri);
    const std::string key = view.route->realm() + uri.substr(0, view.uri.bytes);
    view.key = key;
    view.hash = filter::hash_key(filter::HashFamily::kXxh3, seed, key);
    return RequestContext::make(runtime, view, text, net::Address::loopback_v4(1));
  }
  // Returns the stored object for a request; empty: none.
  store::ObjectRef stored(const RequestContext& of) { return lookup(of).object; }

  std::unique_ptr<net::Loop> loop;
  std::unique_ptr<TransferHome> home;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<cache::Kernel> kernel;
  std::shared_ptr<const Runtime> runtime;
  std::unique_ptr<net::Resolver> resolver;
  WorkerStats stats;
  OriginQueues lines{[] {}};
  OriginPool pool;
  OriginWarnings warnings;
  // More than a stack has room for, where a case has several.
  std::unique_ptr<Inflight> inflight_room = std::make_unique<Inflight>();
  Inflight& inflight = *inflight_room;
  LamportClock latest_moment;
  Http10Servers old_servers;
  filter::Seed seed{1, 2};
  std::unique_ptr<disk::Disks> disks;  // none
  std::unique_ptr<OriginServices> services;
  std::vector<std::unique_ptr<Fetch>> fetches;
  bool draining = false;
  std::function<bool()> relieve;  // called if there is no memory; empty: nothing can be done
  int waits_for_room = 0;
  std::function<void(const cache::Event&)> on_decision;  // the kernel's; empty: nobody looks

 private:
  std::unique_ptr<TransferHome::Turn> turn_;
  std::vector<std::unique_ptr<Fetch>> retired_;
};

// The client of a fetch: reads all that there is, and leaves at the end.
class FetchReader final : public TransferReader {
 public:
  FetchReader(World& world, std::shared_ptr<const RequestContext> request, FetchPlan plan)
      : TransferReader(*world.home), request_(std::move(request)) {
    transfer_ = std::make_shared<Transfer>(*world.home, request_->hash,
                                           std::shared_ptr<const std::string>());
    transfer_->add_first_reader(*this);
    Fetch::start(*world.services, transfer_, request_, std::move(plan));
  }
  ~FetchReader() override { leave(); }

  void on_transfer() override {
    if (transfer_ == nullptr || transfer_->phase() == TransferPhase::kWaiting) return;
    if (transfer_->phase() == TransferPhase::kFailed) {
      failure = transfer_->failure();
      leave();
    } else if (transfer_->phase() == TransferPhase::kValidated) {
      validated = transfer_->validated();
      leave();
    } else if (transfer_->phase() == TransferPhase::kSwitched) {
      switched = transfer_->take_switched();
      leave();
    } else {
      read();
    }
  }
  void on_interim(std::string_view text) override { interim += text; }
  void on_upload_ready() override { ++upload_calls; }
  void leave() {
    if (transfer_ != nullptr) std::exchange(transfer_, nullptr)->leave(*this);
  }
  bool is_done() const { return transfer_ == nullptr; }
  Producer* producer() { return transfer_->producer_here(); }
  const RequestContext& request() const { return *request_; }

  // Takes so much more of the body.
  void take(std::uint64_t bytes) {
    appetite += bytes;
    on_transfer();
  }

  std::optional<TransferFailure> failure;
  std::optional<Validated> validated;
  std::optional<SwitchedConnection> switched;
  std::string interim;
  std::string head;
  std::string body;
  std::uint64_t appetite = UINT64_MAX;
  Outcome outcome{};
  bool whole = false;
  int upload_calls = 0;

 private:
  void read() {
    if (!cursor_) {
      head = transfer_->response().head;
      outcome = transfer_->response().outcome;
      cursor_ = transfer_->body()->open(0);
      REQUIRE(cursor_.has_value());
      transfer_->mark_opened(*this);
    }
    const store::BodyState state = cursor_->state();
    std::array<iovec, 8> parts;
    while (appetite != 0) {
      const auto peeked = cursor_->peek(parts, std::min<std::uint64_t>(appetite, 1U << 20U));
      if (peeked.bytes == 0) break;
      for (std::size_t i = 0; i < peeked.parts; ++i) {
        body.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
      }
      appetite -= peeked.bytes;
      cursor_->advance(peeked.bytes);
      transfer_->advance(*this, cursor_->position());
    }
    if (appetite == 0) return;
    if (state == store::BodyState::kGrowing) return;
    whole = state == store::BodyState::kComplete;
    leave();
  }

  std::shared_ptr<const RequestContext> request_;
  std::shared_ptr<Transfer> transfer_;
  std::optional<store::Body::Cursor> cursor_;
};

}  // namespace encore::server

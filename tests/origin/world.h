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
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
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
    if (connection_) read();
    const int taken = ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (taken < 0) return false;
    if (connection_ && !ended) loses_bytes = true;
    connection_ = net::Socket(taken);
    asked.clear();
    ended = was_reset = false;
    ++accepted;
    return true;
  }
  // Reads what is there, of the connection that was taken last; takes one where there is none.
  void look() {
    (void)accept();
    read();
  }
  // Reads no more than so much of its connection.
  void read_some(std::size_t bytes) {
    std::string room(bytes, '\0');
    const ssize_t got = ::recv(connection_.get(), room.data(), room.size(), 0);
    if (got > 0) received_bytes += static_cast<std::size_t>(got);
  }
  // Reads what connections are left, until each has ended.
  void drain() {
    read();
    while (accept()) read();
  }
  void say(std::string_view text) {
    asked.clear();
    REQUIRE(::send(connection_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()));
    sent_bytes += text.size();
  }
  // Ends its side of the connection.
  void end() { REQUIRE(::shutdown(connection_.get(), SHUT_WR) == 0); }
  // Says what the connection takes of it; how much that was.
  std::size_t offer(std::string_view text) {
    const ssize_t taken = ::send(connection_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    const std::size_t bytes = taken < 0 ? 0 : static_cast<std::size_t>(taken);
    sent_bytes += bytes;
    return bytes;
  }
  void close() {
    loses_bytes = true;
    connection_ = net::Socket();
  }
  void reset() {
    loses_bytes = true;
    net::reset_connection(connection_);
  }
  void stop_listening() { listener_ = net::Socket(); }
  // From now on no connection to it comes about.
  void fall_silent() { fillers_ = net::fill_backlog(listener_); }

  std::string asked;  // since it has answered last
  int accepted = 0;
  bool ended = false;  // by its peer
  bool was_reset = false;
  // Over all connections.
  std::uint64_t received_bytes = 0;
  std::uint64_t sent_bytes = 0;
  // Bytes for it may be lost in a connection that it closed.
  bool loses_bytes = false;

 private:
  void read() {
    if (!connection_ || ended || was_reset) return;
    char room[4096];
    ssize_t got = 0;
    while ((got = ::recv(connection_.get(), room, sizeof(room), 0)) > 0) {
      asked.append(room, static_cast<std::size_t>(got));
      received_bytes += static_cast<std::size_t>(got);
    }
    ended = got == 0;
    was_reset = got < 0 && errno == ECONNRESET;
    if (was_reset) loses_bytes = true;
  }

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
    run_turn();
    // Nobody uses a connection any more: what is open is idle.
    if (std::uncaught_exceptions() == 0) {
      CHECK(stats.origin_connections.get() == pool.size());
    }
    pool.close_all();
    run_turn();
    if (std::uncaught_exceptions() == 0) check_accounts();
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
    origins_.insert(&origin);
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
    return make_request(text, Way::kReverse);
  }
  // A request to a forward proxy: its target names the origin, which has no counters.
  std::shared_ptr<const RequestContext> forward_request(const std::string& text) {
    is_forward_ = true;
    return make_request(text, Way::kForward);
  }
  // Failures of this kind that were counted for any server.
  std::uint64_t failures(ServerFailure kind) const {
    std::uint64_t sum = 0;
    for (const auto& [server, counters] : counters_) {
      sum += counters->sums().failures.at(static_cast<std::size_t>(kind));
    }
    return sum;
  }
  std::uint64_t failures() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kServerFailureCount; ++i) {
      sum += failures(static_cast<ServerFailure>(i));
    }
    return sum;
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

  // --- the accounts, which the end of each case checks ---

  // Notes of FetchReaders.
  struct {
    std::vector<std::weak_ptr<Transfer>> transfers;
    std::uint64_t stored = 0;     // whole responses that were said to be stored
    std::uint64_t left = 0;       // readers that left before they knew
    std::uint64_t connected = 0;  // responses that were said to come on a new connection
    std::uint64_t reused = 0;     // or on a kept one
  } told;
  // Set if an origin's bytes are for nobody: they come behind a response, or nobody waits for them.
  bool wastes_bytes = false;
  // Set if origins speak HTTP/2: texts are counted, and not the frames that carry them.
  bool is_http2 = false;

 private:
  enum class Way : std::uint8_t { kReverse, kForward };
  std::shared_ptr<const RequestContext> make_request(const std::string& text, Way way) {
    http::RequestHead head;
    http::ParseError error;
    REQUIRE(http::parse_request(text, {}, head, error) == http::ParseStatus::kComplete);
    RequestView view;
    view.head = &head;
    view.framing = http::request_framing(head);
    REQUIRE(http::resolve_target(head, http::Scheme::kHttp, view.target) ==
            http::TargetStatus::kOk);
    if (way == Way::kReverse) {
      view.route = runtime->router.match("", view.target.path);
      REQUIRE(view.route != nullptr);
      const ServerGroup& group = view.route->group();
      for (const OriginServer& each : group.servers()) counters_[&each] = group.counters(each);
      groups_[&group] = runtime;
    }
    const RequestPolicy& policy = view.route == nullptr ? runtime->forward : runtime->reverse;
    view.rule = runtime->rules
                    .find({.host = view.target.authority.host,
                           .path = view.target.path,
                           .method = head.method_text})
                    .rule;
    if (view.rule != nullptr) {
      view.request_policy = &view.rule->request_policy(view.route == nullptr);
    }
    std::string uri(http::key_bytes_max(view.target), '\0');
    view.uri = http::write_key(view.target, policy.keys, uri);
    const std::string_view realm = view.route == nullptr ? kForwardRealm : view.route->realm();
    const std::string key = std::string(realm) + uri.substr(0, view.uri.bytes);
    view.key = key;
    view.hash = filter::hash_key(filter::HashFamily::kXxh3, seed, key);
    return RequestContext::make(runtime, view, text, net::Address::loopback_v4(1));
  }
  // Nothing is left of any fetch, and each byte was counted once, for all and for its server.
  void check_accounts() {
    CHECK(stats.origin_connections.get() == 0);
    CHECK(lines.size() == 0);
    CHECK(lines.waiting() == 0);
    CHECK(kernel->statistics().reserved_bytes == 0);
    CHECK(store->stats().in_flight_bytes == 0);
    // No server works on a request.
    for (const auto& [group, of] : groups_) {
      for (const ServerGroup::Seen& seen : group->look()) CHECK(seen.active == 0);
    }
    if (told.transfers.empty()) return;
    CHECK(store->stats().objects == kernel->statistics().objects);
    for (const auto& transfer : told.transfers) CHECK(transfer.expired());
    CHECK(told.connected <= stats.origin_connects.get());
    CHECK(told.reused <= stats.origin_reuses.get());
    CHECK(stats.stored.get() >= told.stored);
    CHECK(stats.stored.get() <= told.stored + told.left);
    std::uint64_t received = 0;
    std::uint64_t sent = 0;
    bool loses_bytes = false;
    for (Origin* origin : origins_) {
      origin->drain();
      received += origin->received_bytes;
      sent += origin->sent_bytes;
      loses_bytes = loses_bytes || origin->loses_bytes;
    }
    if (!is_http2) {
      CHECK(received <= stats.bytes_to_origins.get());
      if (!loses_bytes) CHECK(received == stats.bytes_to_origins.get());
      CHECK(stats.bytes_from_origins.get() <= sent);
      if (!wastes_bytes) CHECK(stats.bytes_from_origins.get() == sent);
    }
    // Each request had a connection: a new one or a kept one.
    CHECK(stats.origin_requests.get() <= stats.origin_connects.get() + stats.origin_reuses.get());
    if (is_forward_) return;
    ServerSums sums;
    for (const auto& [server, counters] : counters_) {
      const ServerSums each = counters->sums();
      sums.sent += each.sent;
      sums.sent_bytes += each.sent_bytes;
      sums.received_bytes += each.received_bytes;
      sums.connects += each.connects;
      sums.connections += each.connections;
      sums.answers += each.answers;
      sums.retries += each.retries;
    }
    CHECK(stats.origin_retries.get() <= sums.retries);
    CHECK(sums.sent == stats.origin_requests.get());
    CHECK(sums.sent_bytes == stats.bytes_to_origins.get());
    CHECK(sums.received_bytes == stats.bytes_from_origins.get());
    CHECK(sums.connects == stats.origin_connects.get());
    CHECK(sums.connections == 0);
    CHECK(sums.answers <= sums.sent);
    CHECK(sums.answers >= told.connected + told.reused);
  }

  std::unique_ptr<TransferHome::Turn> turn_;
  std::vector<std::unique_ptr<Fetch>> retired_;
  std::set<Origin*> origins_;
  bool is_forward_ = false;
  std::map<const OriginServer*, std::shared_ptr<ServerCounters>> counters_;
  std::map<const ServerGroup*, std::shared_ptr<const Runtime>> groups_;  // and what has them
};

// The client of a fetch: reads all that there is, and leaves at the end.
class FetchReader final : public TransferReader {
 public:
  FetchReader(World& world, std::shared_ptr<const RequestContext> request, FetchPlan plan)
      : TransferReader(*world.home), world_(world), request_(std::move(request)) {
    transfer_ = std::make_shared<Transfer>(
        *world.home, request_->hash,
        plan.in_table ? std::make_shared<const std::string>(request_->key) : nullptr);
    world.told.transfers.push_back(transfer_);
    if (plan.in_table) world.inflight.enter(transfer_);
    transfer_->add_first_reader(*this);
    Fetch::start(*world.services, transfer_, request_, std::move(plan));
  }
  // Joins what is in the table; is_done() where there is nothing to join.
  struct Join {};
  FetchReader(Join, World& world, std::shared_ptr<const RequestContext> request,
              JoinScope scope = JoinScope::kAny)
      : TransferReader(*world.home), world_(world), request_(std::move(request)) {
    http::VariantKeys variants(request_->head.fields, request_->vary());
    Inflight::Claim claim = world.inflight.join_or_enter({.hash = request_->hash,
                                                          .key = request_->key,
                                                          .variants = variants,
                                                          .reader = *this,
                                                          .scope = scope},
                                                         nullptr);
    joined = claim.joined;
    transfer_ = std::move(claim.transfer);
    if (joined == JoinOutcome::kBehindHead) on_transfer();
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
    if (transfer_ == nullptr) return;
    if (!joined) note();
    std::exchange(transfer_, nullptr)->leave(*this);
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
  std::optional<JoinOutcome> joined;  // nothing: it has started the transfer
  OriginVisit visit;
  std::shared_ptr<const SharedResponse> response;

 private:
  // Notes its result for the accounts.
  void note() {
    const TransferPhase phase = transfer_->phase();
    if (phase == TransferPhase::kWaiting || (response != nullptr && !whole)) ++world_.told.left;
    if (whole && response->stored != false) ++world_.told.stored;
    if (response != nullptr) {
      visit = response->visit;
    } else if (phase == TransferPhase::kValidated) {
      visit = transfer_->validated().visit;
    } else if (phase == TransferPhase::kFailed) {
      visit = transfer_->failure().visit;
    }
    if (visit.answer.count() < 0) return;
    ++(visit.connect.count() < 0 ? world_.told.reused : world_.told.connected);
    CHECK(visit.version == (world_.is_http2 ? "HTTP/2" : "HTTP/1.1"));
    CHECK(visit.server.empty() == request_->is_forward());
    if (!visit.server.empty()) {
      CHECK(visit.address.ends_with(visit.server.substr(visit.server.rfind(':'))));
    }
    CHECK(visit.answer <= world_.loop->now() - begun_);
  }
  void read() {
    if (!cursor_) {
      response = transfer_->response_pointer();
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

  World& world_;
  const MonotonicTime begun_ = world_.loop->now();
  std::shared_ptr<const RequestContext> request_;
  std::shared_ptr<Transfer> transfer_;
  std::optional<store::Body::Cursor> cursor_;
};

}  // namespace encore::server

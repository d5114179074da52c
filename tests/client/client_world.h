// A worker's rooms on one thread, without the worker: connections over loopback sockets, whose
// other ends the test speaks for, and an origin that it plays as well. However a test ends, all is
// given back then, and each byte was counted once; sweeps that find nothing due change nothing.
#pragma once

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/client/http1_connection.h"
#include "proxy/client/unfinished_heads.h"
#include "proxy/net/tls_server.h"
#include "proxy/observe/request_tap.h"
#include "proxy/process/request_services.h"
#include "tests/catch.h"
#include "tests/net/net_test_support.h"
#include "tests/net/reset.h"
#include "tests/origin/world.h"

namespace encore::server {

class Client;

class ClientWorld final : private ConnectionKeeper, private OriginFetcher {
 public:
  explicit ClientWorld(config::Mode mode = config::Mode::kReverse,
                       const std::function<void(config::Config&)>& change = {},
                       const std::function<void(cache::KernelOptions&)>& cache = {})
      : world(
            {origin.url()},
            [&](config::Config& config) {
              config.forward.connect_ports = {origin.port()};
              if (change) change(config);
            },
            cache),
        writer_(open_log(world.runtime->config.log.access)),
        log_(*world.loop, world.stats, writer_.get(), world.runtime, {.tap = &tap_}),
        retired_(*world.loop, [] {}),
        rooms(RequestServicesParts{.loop = *world.loop,
                                   .retired = retired_,
                                   .resolver = *world.resolver,
                                   .runtime = world.runtime,
                                   .kernel = world.kernel,
                                   .latest_moment = world.latest_moment,
                                   .identity_seed = world.seed,
                                   .inflight = world.inflight,
                                   .transfer_memory = transfer_memory,
                                   .coding_memory = coding_memory,
                                   .clients = clients,
                                   .transfers = transfers,
                                   .handshakes = handshakes,
                                   .passwords = passwords,
                                   .home = *world.home,
                                   .stats = world.stats,
                                   .log = log_,
                                   .origins = *this,
                                   .keeper = *this,
                                   .activity = activity_,
                                   .forward_warnings = world.warnings,
                                   .published = nullptr,
                                   .store = world.store,
                                   .disks = world.disks,
                                   .resident = nullptr}),
        listener_{mode} {}
  ~ClientWorld() {
    while (!connections_.empty()) connections_.back()->cut();
    retired_.drop();
    check_all_given_back();
    check_counts();
    check_origin();
  }
  ClientWorld(const ClientWorld&) = delete;
  ClientWorld& operator=(const ClientWorld&) = delete;

  ClientConnection& connect(net::Socket socket, const net::Address& peer) {
    net::TlsSessionPointer session;
    if (tls != nullptr) session = tls->session();
    auto* const made =
        new Http1Connection(rooms.client, listener_, std::move(socket), peer, std::move(session));
    connections_.push_back(made);
    made->begin();
    return *made;
  }
  void enter(Client& client) { clients_.push_back(&client); }
  void leave(Client& client) { std::erase(clients_, &client); }

  void run_turns(int turns);
  // Without sweeps: what is waited for comes without them.
  void run_until(const std::function<bool()>& done);
  // Until the origin was asked something whole.
  void run_until_asked() {
    run_until([&] { return origin.asked.find("\r\n\r\n") != std::string::npos; });
  }
  // Writes the text in pieces that sockets take, while its receiver reads.
  void answer(std::string_view text) {
    constexpr std::size_t kPiece = 16 * 1024;
    for (; !text.empty(); text.remove_prefix(std::min(kPiece, text.size()))) {
      origin.say(text.substr(0, kPiece));
      run_turns(2);
    }
  }
  std::uint64_t ended_as(Outcome outcome) const {
    return world.stats.requests[static_cast<std::size_t>(outcome)].get();
  }
  std::uint64_t records() const {
    std::uint64_t sum = 0;
    for (const Counter& each : world.stats.requests) sum += each.get();
    return sum;
  }
  // From now on records are kept, as the access log has them.
  void keep_records() {
    tap_.set_on(true);
    log_.hand_over();
  }
  // A record that was made since then. REQUIRES: there is one of that number, from 0.
  nlohmann::json record(std::size_t number = 0) const {
    const auto batch = tap_.take(0, number + 1);
    REQUIRE(batch.lines.size() == number + 1);
    return nlohmann::json::parse(batch.lines[number]);
  }
  // Writes to the file of the access log what was recorded.
  void write_log() {
    log_.hand_over();
    writer_->flush();
  }
  std::size_t connections() const { return connections_.size(); }
  // As a reload does that has it no more.
  void close_listener() { listener_.closed = true; }
  // A client of HTTP/2 leaves that has heard so many bytes of responses, frames included;
  // `is_all`: of all that its connection has written.
  void hear_frames(std::uint64_t bytes, bool is_all) {
    framed_ += bytes;
    if (is_all) ++framed_clients_;
  }

 private:
  void run_turn();
  // A look after all connections, when nothing is due.
  void sweep() {
    for (ClientConnection* const each : std::vector(connections_)) {
      const net::Stream& stream = each->stream();
      if (!stream.is_tls()) used_[each] = stream.bytes_read() - stream.kept_bytes();
      if (each->is_tunnel() && each->may_be_given_up()) FAIL_CHECK("a tunnel is never idle");
      each->check_timeouts(world.loop->now());
    }
  }

  // ConnectionKeeper
  void retire(ClientConnection& connection) override {
    REQUIRE(std::erase(connections_, &connection) == 1);
    CHECK_FALSE(connection.stream().is_open());
    note_bytes(connection);
    retired_.add(std::unique_ptr<ClientConnection>(&connection));
  }
  void replace(ClientConnection& connection, ClientConnection& made) override;
  void note_unfinished_head(ClientConnection& connection, std::size_t bytes) override {
    heads.note(connection, connection.head_place, bytes);
  }
  void drop_unfinished_head(ClientConnection& connection) override {
    heads.drop(connection.head_place);
  }
  bool is_draining() const override { return world.draining; }
  bool closes_untold() const override { return world.draining && !is_announced; }
  std::uint32_t connections_allowed() const override { return 65536; }

  // A connection of HTTP/1 counts the bytes that it has moved, but for those that nobody used.
  void note_bytes(ClientConnection& connection) {
    received_ += connection.stream().bytes_read();
    used_seen_ += std::exchange(used_[&connection], 0);
    if (dynamic_cast<Http1Connection*>(&connection) != nullptr) {
      written_ += connection.stream().bytes_written();
    } else {
      ++framed_connections_;
    }
  }
  void check_all_given_back() const {
    const WorkerStats& stats = world.stats;
    CHECK(heads.count() == 0);
    CHECK(heads.bytes() == 0);
    CHECK(transfer_memory.bytes() == 0);
    CHECK(coding_memory.used() == 0);
    CHECK(stats.http2_open.get() == 0);
    CHECK(stats.http2_streams_open.get() == 0);
    CHECK(stats.tls_handshaking.get() == 0);
    CHECK(stats.tunnels_open.get() == 0);
    CHECK(stats.upgrades_open.get() == 0);
    CHECK(rooms.http1.batch.empty());
    CHECK(rooms.http1.gathered.empty());
  }
  void check_counts() const {
    const WorkerStats& stats = world.stats;
    CHECK(listener_.counts->sent_bytes.get() == stats.bytes_to_clients.get());
    CHECK(listener_.counts->received_bytes.get() == stats.bytes_from_clients.get());
    CHECK(stats.bytes_from_clients.get() <= received_);
    CHECK(stats.bytes_from_clients.get() >= used_seen_);
    std::array<std::uint64_t, kOutcomeClassCount> ended{};
    for (std::size_t i = 0; i < stats.requests.size(); ++i) {
      ended[static_cast<std::size_t>(class_of(static_cast<Outcome>(i)))] += stats.requests[i].get();
    }
    for (std::size_t i = 0; i < ended.size(); ++i) {
      CHECK(listener_.counts->requests[i].get() == ended[i]);
    }
    CHECK(stats.bytes_to_clients.get() >= written_ + framed_);
    if (framed_clients_ == framed_connections_ && stats.http2_streams_reset.get() == 0) {
      CHECK(stats.bytes_to_clients.get() == written_ + framed_);
    }
  }
  // Each byte to and from the origin was counted once.
  void check_origin() {
    const WorkerStats& stats = world.stats;
    // The request for a tunnel through another proxy counts as nothing.
    if (*world.runtime->config.forward.parent) return;
    origin.drain();
    CHECK(stats.bytes_to_origins.get() >= origin.received_bytes);
    if (!origin.loses_bytes) CHECK(stats.bytes_to_origins.get() == origin.received_bytes);
    CHECK(stats.bytes_from_origins.get() <= origin.sent_bytes);
  }

  // OriginFetcher
  void start_fetch(std::shared_ptr<Transfer> transfer,
                   std::shared_ptr<const RequestContext> request, OriginFetchOptions ask) override {
    FetchPlan plan;
    plan.whole = ask.what == OriginRequestForm::kWhole;
    plan.in_table = ask.table == OriginFetchOptions::Table::kIn;
    plan.background = ask.whom == OriginFetchOptions::For::kNobody;
    plan.has_upload = ask.content == OriginFetchOptions::Content::kComes;
    plan.stored = std::move(ask.validates.object);
    plan.stored_fresh_until = ask.validates.fresh_until;
    Fetch::start(*world.services, std::move(transfer), std::move(request), std::move(plan));
  }

 public:
  Origin origin;
  TransferMemory transfer_memory;
  CodingMemory coding_memory;
  ClientCounter clients;
  ClientCounter transfers;
  ClientCounter handshakes;
  PasswordChecks passwords;
  UnfinishedHeads heads;
  World world;
  bool sweeps = true;
  bool is_announced = false;                  // a drain
  std::shared_ptr<const net::TlsServer> tls;  // that the next connections speak; null: none

 private:
  static std::unique_ptr<LogWriter> open_log(const std::string& path) {
    if (path.empty()) return nullptr;
    auto writer = LogWriter::open(path);
    REQUIRE(writer.has_value());
    return std::move(*writer);
  }

  RequestTap tap_;
  std::unique_ptr<LogWriter> writer_;  // null: the configuration names no file
  RequestLog log_;
  net::DeferredDeleter retired_;
  ThreadActivity activity_;

 public:
  RequestServices rooms;

 private:
  ListenerContext listener_;
  std::vector<ClientConnection*> connections_;       // owned
  std::uint64_t received_ = 0;                       // from clients, by connections that have ended
  std::uint64_t used_seen_ = 0;                      // of them, at the last sweep
  std::map<ClientConnection*, std::uint64_t> used_;  // by open ones, likewise
  std::uint64_t written_ = 0;                        // to clients of HTTP/1, likewise
  // Those who spoke HTTP/2; of their responses, what was heard; and who has heard all of it.
  int framed_connections_ = 0;
  std::uint64_t framed_ = 0;
  int framed_clients_ = 0;
  std::vector<Client*> clients_;
};

// A client that speaks to the proxy.
class Client {
 public:
  explicit Client(ClientWorld& world) : world_(world) {
    net::SocketPair pair;
    socket_ = std::move(pair.far);
    start(std::move(pair.near), pair.far_address);
  }
  // The kernel holds this much of what it is sent, whatever time passes, and makes room as it
  // reads; no reset is seen.
  struct Narrow {
    int kernel_bytes = 4096;
  };
  Client(ClientWorld& world, Narrow narrow) : world_(world) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    socket_ = net::Socket(ends[1]);
    net::Socket near(ends[0]);
    REQUIRE(::setsockopt(near.get(), SOL_SOCKET, SO_SNDBUF, &narrow.kernel_bytes,
                         sizeof narrow.kernel_bytes) == 0);
    start(std::move(near), net::Address::loopback_v4(1));
  }
  // Its kernel takes little of what it is sent, and ours no more than `unsent_bytes` beyond that.
  struct Shallow {
    int unsent_bytes = 4096;
  };
  Client(ClientWorld& world, Shallow shallow) : world_(world) {
    net::SocketPair pair;
    constexpr int kBufferBytes = 4096;
    REQUIRE(::setsockopt(pair.near.get(), SOL_SOCKET, SO_SNDBUF, &shallow.unsent_bytes,
                         sizeof shallow.unsent_bytes) == 0);
    // Else the system lets it grow, to whatever comes while the machine is busy.
    REQUIRE(::setsockopt(pair.far.get(), SOL_SOCKET, SO_RCVBUF, &kBufferBytes,
                         sizeof kBufferBytes) == 0);
    socket_ = std::move(pair.far);
    is_shallow_ = true;
    start(std::move(pair.near), pair.far_address);
  }
  ~Client() { world_.leave(*this); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void say(std::string_view text) { REQUIRE(net::send_all(socket_, text)); }
  void end() { REQUIRE(::shutdown(socket_.get(), SHUT_WR) == 0); }
  void go() { socket_ = net::Socket(); }
  void reset() { net::reset_connection(socket_); }
  void look() {
    if (!reads) has_waited_ = true;
    if (!socket_ || !reads || is_over()) return;
    if (is_shallow_ && has_waited_) deepen();
    char room[65536];
    ssize_t got = 0;
    while ((got = ::recv(socket_.get(), room, sizeof room, 0)) > 0) {
      heard.append(room, static_cast<std::size_t>(got));
    }
    if (got == 0) ended = true;
    if (got < 0 && errno == ECONNRESET) was_reset = true;
  }
  bool is_over() const { return ended || was_reset; }
  bool is_there() const { return static_cast<bool>(socket_); }
  ClientWorld& world() { return world_; }
  // The connection as the proxy has it. REQUIRES: it has not ended.
  ClientConnection& connection() { return *connection_; }
  // Another one goes on with it.
  void replace(const ClientConnection& connection, ClientConnection& made) {
    if (connection_ == &connection) connection_ = &made;
  }

  std::string heard;
  bool reads = true;
  bool ended = false;
  bool was_reset = false;

 private:
  // It has not read and does now: windows of a few bytes, each with its timer, would take seconds.
  void deepen() {
    constexpr int kBufferBytes = 1 << 20;
    REQUIRE(::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &kBufferBytes,
                         sizeof kBufferBytes) == 0);
    REQUIRE(::setsockopt(socket_.get(), IPPROTO_TCP, TCP_WINDOW_CLAMP, &kBufferBytes,
                         sizeof kBufferBytes) == 0);
    is_shallow_ = false;
  }
  void start(net::Socket near, const net::Address& address) {
    connection_ = &world_.connect(std::move(near), address);
    world_.enter(*this);
  }

  ClientWorld& world_;
  net::Socket socket_;
  bool is_shallow_ = false;
  bool has_waited_ = false;
  ClientConnection* connection_ = nullptr;
};

inline void ClientWorld::replace(ClientConnection& connection, ClientConnection& made) {
  const auto found = std::ranges::find(connections_, &connection);
  REQUIRE(found != connections_.end());
  *found = &made;
  for (Client* client : clients_) client->replace(connection, made);
  used_[&made] = std::exchange(used_[&connection], 0);
  retired_.add(std::unique_ptr<ClientConnection>(&connection));
}

inline void ClientWorld::run_turns(int turns) {
  for (int i = 0; i < turns; ++i) {
    run_turn();
    if (sweeps) sweep();
  }
}

inline void ClientWorld::run_turn() {
  world.run_turn();
  origin.look();
  for (Client* client : clients_) client->look();
}

inline void ClientWorld::run_until(const std::function<bool()>& done) {
  // Enough for anything that happens on this machine; a test that needs more hangs.
  constexpr int kTurnsMax = 50'000'000;
  for (int i = 0; i < kTurnsMax && !done(); ++i) run_turn();
  REQUIRE(done());
  if (sweeps) sweep();
}

}  // namespace encore::server

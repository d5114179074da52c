// Clients that reach a worker, and those that give way to them if there is no more space: the one
// whose connection has been idle for longest, and the one whose head takes longest to come.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "proxy/client/client_connection.h"
#include "proxy/net/tls_server.h"
#include "proxy/process/request_services.h"
#include "proxy/process/worker.h"

namespace encore::server {
namespace {

// At the limit a check of all connections finds space for this share of them, so that a flood of
// clients costs each of them a check of as many connections as this, however many there are.
constexpr std::size_t kGivenUpShare = 64;
// A look that found no idle connection is not repeated before a time in proportion to what it took:
// some 100 ns a connection, a tenth of the time.
constexpr Nanoseconds kRestPerConnection = std::chrono::microseconds(1);
// Clients that wait for what other workers can give up: enough for a burst, and few compared with
// the descriptors that they take.
constexpr std::uint64_t kArrivalsMax = 256;
constexpr std::uint64_t kArrivalsShare = 16;

// How many of `all` connections the peer may have; 0: it is not counted, for it speaks for others.
std::uint32_t connections_of(const Runtime& runtime, const net::Address& peer,
                             const ListenerContext& context, std::uint32_t all) {
  const ListenerPolicy* const policy = runtime.policy(context.index);
  if (policy != nullptr &&
      (policy->trusts(peer) || (policy->proxy_protocol && policy->trusted.empty()))) {
    return 0;
  }
  return client_limit(*runtime.config.limits.connections_per_client, all);
}

// True if a worker, one of `workers`, keeps more unfinished heads than its share: clients are
// spread evenly over the workers. `connections`: how many all may have.
bool are_over(const UnfinishedHeads& heads, const config::Limits& limits, std::size_t connections,
              std::size_t workers) {
  workers = std::max<std::size_t>(workers, 1);
  // Half of the connections are left to those whose requests come whole.
  const std::size_t count =
      std::min<std::size_t>(limits.unfinished_heads, connections / 2) / workers;
  return heads.count() > std::max<std::size_t>(count, 1) ||
         heads.bytes() > limits.unfinished_head_bytes / workers;
}

}  // namespace

// A client that has come while there was no room, and nothing to give up on its own worker.
struct Worker::Arrival {
  Worker* worker = nullptr;
  net::Socket socket;
  net::Address peer;
  const ListenerContext* context = nullptr;
  std::size_t asked = 0;  // workers, in their order
};

// Counts one more connection of this client where the limits allow it.
Worker::Entry Worker::enter(const net::Address& peer, const ListenerContext& context,
                            ClientCounter::Seat& seat) {
  const std::uint32_t limit = connections_allowed();
  const std::uint32_t per_client = connections_of(*runtime_, peer, context, limit);
  // First, for nobody's connection is closed for one that is refused anyway.
  if (per_client != 0 && !seat.take(shared_.clients, peer, per_client)) return Entry::kClientFull;
  if (shared_.connections.fetch_add(1, std::memory_order_relaxed) >= limit && !give_up_idle()) {
    shared_.connections.fetch_sub(1, std::memory_order_relaxed);
    seat.leave();
    return Entry::kFull;
  }
  return Entry::kIn;
}

void Worker::accept(net::Socket socket, const net::Address& peer, const ListenerContext& context) {
  ClientCounter::Seat seat;
  const Entry entry = enter(peer, context, seat);
  if (entry == Entry::kIn) {
    admit(std::move(socket), peer, context, std::move(seat));
    return;
  }
  if (entry == Entry::kClientFull || shared_.workers.size() < 2 ||
      arrivals_waiting_ >= std::min(kArrivalsMax, shared_.descriptors / kArrivalsShare)) {
    stats_.connections_refused.add();
    return;  // the socket closes
  }
  ++arrivals_waiting_;
  auto arrival = std::make_shared<Arrival>();
  arrival->worker = this;
  arrival->socket = std::move(socket);
  arrival->peer = peer;
  arrival->context = &context;
  ask_others(std::move(arrival));
}

void Worker::admit(net::Socket socket, const net::Address& peer, const ListenerContext& context,
                   ClientCounter::Seat seat) {
  const ListenerPolicy* const policy = runtime_->policy(context.index);
  net::TlsSessionPointer tls;
  // A PROXY header comes in front of it.
  if (context.tls != nullptr && (policy == nullptr || !policy->proxy_protocol)) {
    tls = context.tls->session();
    if (tls == nullptr) {  // no memory
      shared_.connections.fetch_sub(1, std::memory_order_relaxed);
      stats_.connections_refused.add();
      return;
    }
  }
  stats_.connections_accepted.add();
  stats_.connections_open.add();
  ClientConnection* const connection = new Http1Connection(request_services_->client, context,
                                                           std::move(socket), peer, std::move(tls));
  connection->seat = std::move(seat);
  connection->let_in_by = &context;
  connection->listed = ListenerSeatCount(context.counts);
  connection->next = connections_;
  if (connections_ != nullptr) connections_->previous = connection;
  connections_ = connection;
  connection->begin();
}

void Worker::replace(ClientConnection& connection, ClientConnection& made) {
  made.seat = std::move(connection.seat);
  made.let_in_by = connection.let_in_by;
  made.listed = std::move(connection.listed);
  made.previous = std::exchange(connection.previous, nullptr);
  made.next = std::exchange(connection.next, nullptr);
  if (unswept_ == &connection) unswept_ = &made;
  (made.previous == nullptr ? connections_ : made.previous->next) = &made;
  if (made.next != nullptr) made.next->previous = &made;
  retired_->add(std::unique_ptr<ClientConnection>(&connection));
}

// One worker after the other is asked to give up an idle connection. The client's own worker checks
// their answers.
void Worker::ask_others(std::shared_ptr<Arrival> arrival) {
  if (arrival->asked < shared_.workers.size() && shared_.workers[arrival->asked] == this) {
    ++arrival->asked;
  }
  if (arrival->asked == shared_.workers.size()) {
    --arrivals_waiting_;
    stats_.connections_refused.add();
    return;
  }
  Worker& other = *shared_.workers[arrival->asked++];
  other.post([&other, arrival = std::move(arrival)]() mutable {
    const bool room = other.give_up_idle();
    Worker& own = *arrival->worker;
    own.post([&own, arrival = std::move(arrival), room] { own.resume_arrival(arrival, room); });
  });
}

void Worker::resume_arrival(const std::shared_ptr<Arrival>& arrival, bool room) {
  if (!room || draining_) return ask_others(arrival);
  shared_.connections.fetch_add(1, std::memory_order_relaxed);
  ENCORE_CHECK(arrivals_waiting_ != 0, "a client that waits is counted");
  --arrivals_waiting_;
  const std::uint32_t per_client =
      connections_of(*runtime_, arrival->peer, *arrival->context, connections_allowed());
  ClientCounter::Seat seat;
  if (per_client != 0 && !seat.take(shared_.clients, arrival->peer, per_client)) {
    shared_.connections.fetch_sub(1, std::memory_order_relaxed);
    stats_.connections_refused.add();
    return;
  }
  admit(std::move(arrival->socket), arrival->peer, *arrival->context, std::move(seat));
}

bool Worker::give_up_idle() {
  const MonotonicTime now = loop_->now();
  if (now < none_idle_until_) return false;
  std::vector<ClientConnection*> idle;
  std::size_t count = 0;
  for (ClientConnection* each = connections_; each != nullptr; each = each->next) {
    ++count;
    // A client that came in this turn has had no time to send a request.
    if (each->may_be_given_up() && each->stream().last_activity() < now) idle.push_back(each);
  }
  if (idle.empty()) {
    none_idle_until_ = now + static_cast<std::int64_t>(count) * kRestPerConnection;
    return false;
  }
  const auto idle_since = [](ClientConnection* each) { return each->stream().last_activity(); };
  std::ranges::make_heap(idle, std::ranges::greater(), idle_since);  // the longest on top
  std::size_t left = std::max<std::size_t>(1, idle.size() / kGivenUpShare);
  bool given_up = false;
  while (left != 0 && !idle.empty()) {
    std::ranges::pop_heap(idle, std::ranges::greater(), idle_since);
    ClientConnection& longest = *idle.back();
    idle.pop_back();
    if (longest.stream().has_unread()) continue;  // it is idle no longer
    stats_.connections_given_up.add();
    longest.give_up();
    given_up = true;
    --left;
  }
  return given_up;
}

void Worker::note_unfinished_head(ClientConnection& connection, std::size_t bytes) {
  unfinished_heads_.note(connection, connection.head_place, bytes);
  if (are_over(unfinished_heads_, runtime_->config.limits, connections_allowed(),
               shared_.workers.size())) {
    trim_heads_->schedule();
  }
}

void Worker::drop_unfinished_head(ClientConnection& connection) {
  unfinished_heads_.drop(connection.head_place);
}

void Worker::trim_heads() {
  while (unfinished_heads_.count() != 0 &&
         are_over(unfinished_heads_, runtime_->config.limits, connections_allowed(),
                  shared_.workers.size())) {
    stats_.heads_given_up.add();
    unfinished_heads_.oldest().refuse_unfinished_head();
  }
}

}  // namespace encore::server

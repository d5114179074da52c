// Compiled without access control (CMakeLists.txt): it reads what the proxy's parts show to nobody,
// so that nothing of the proxy is there for the sake of this check, and what is checked is what is
// released.
#include "tests/simulate/held.h"

#include <map>
#include <string>

#include "proxy/exchange/exchange.h"
#include "proxy/net/linger.h"
#include "proxy/origin/fetch.h"
#include "proxy/process/series_reports.h"
#include "proxy/process/worker.h"
#include "proxy/request/request_context.h"
#include "tests/simulate/under_way.h"

namespace encore::simulate {
namespace {

std::uint64_t lingering_at(server::Worker& worker) {
  return net::Lingering::of(worker.loop()).entries_.size();
}

std::uint64_t readers_of(const server::Transfer& transfer) {
  std::uint64_t count = 0;
  for (const server::TransferReader* at = transfer.readers_; at != nullptr; at = at->next_) ++count;
  return count;
}

std::uint64_t seats_of(const server::ClientCounter& counter) {
  std::uint64_t count = 0;
  for (const auto& shard : counter.shards_) {
    for (const auto& [key, record] : shard.records) count += record.count.load();
  }
  return count;
}

bool has_body_to_come(const server::Fetch& fetch) {
  return fetch.state_ == server::FetchState::At::kBody &&
         fetch.request_->head.method == http::Method::kGet && !fetch.body_.has_nothing_to_come();
}

// Its client gets no body, whatever the response has: 1xx, 204 and 304 have none, nor has the
// answer to a HEAD, or a 416 of the proxy's own.
bool is_without_body(const server::Exchange& exchange) {
  const int status = exchange.record_.status;
  const bool is_own_416 =
      status == 416 && exchange.response_ != nullptr && exchange.response_->meta.status != 416;
  return exchange.request_->head.method == http::Method::kHead || status == 204 || status == 304 ||
         status == 412 || is_own_416;
}

}  // namespace

void Held::same(std::uint64_t value, std::uint64_t wanted, const std::string& what) const {
  if (value == wanted) return;
  on_fault_(what + ": " + std::to_string(value) + ", and " + std::to_string(wanted) +
            " should be there");
}

void Held::look() const {
  look_at_connections();
  look_at_reservations();
  look_at_readers();
  look_at_client_streams();
  look_at_origin_streams();
  look_at_lines();
}

// As the proxy counts them in five places, and as its system does.
void Held::look_at_connections() const {
  const System::Sockets sockets = system_.proxy_sockets();
  const server::Shared& shared = proxy_.shared();
  std::uint64_t open = 0;
  std::uint64_t origins = 0;
  std::uint64_t listed = 0;
  std::uint64_t lingering = 0;
  for (const auto& worker : proxy_.workers()) {
    lingering += lingering_at(*worker);
    open += worker->stats().connections_open.get();
    origins += worker->stats().origin_connections.get();
  }
  each_connection(proxy_, [&](const auto&) { ++listed; });
  // Those that have ended are sent what they are owed.
  if (listed > sockets.clients || listed + lingering < sockets.clients) {
    same(listed, sockets.clients, "connections of clients, in the workers' lists");
  }
  same(open, listed, "connections of clients, counted");
  same(shared.connections.load(), listed, "connections of clients, of all workers");
  // One that was just made is not counted yet.
  if (origins > sockets.origins) same(origins, sockets.origins, "connections to origins, counted");
  std::uint64_t by_listener = 0;
  for (const auto& each : server::series_report(*proxy_.present_runtime(), shared).listeners) {
    by_listener += each.open;
  }
  same(by_listener, listed, "connections of clients, counted by listener");
}

// Bytes that the kernel has reserved are for bodies that come, each for its own; one that goes to
// disk alone takes none of the memory.
void Held::look_at_reservations() const {
  std::uint64_t reserved = 0;
  for (const auto& worker : proxy_.workers()) {
    for (const auto& fetch : worker->fetches()) {
      const server::StoreWriter& writer = fetch->body_.writer_;
      reserved += writer.reserved_bytes_;
      if (!writer.is_under_way()) same(writer.reserved_bytes_, 0, "bytes for what is not stored");
      if (writer.is_under_way() && !writer.keeps_whole()) {
        same(writer.reserved_bytes_, 0, "bytes of memory for what goes to disk alone");
      }
    }
  }
  same(proxy_.shared().kernel->statistics().reserved_bytes, reserved, "bytes reserved for bodies");
}

// None whose answer has no body holds back those who read one.
void Held::look_at_bodiless() const {
  each_under_way(proxy_, [&](const UnderWay& request) {
    const server::Exchange* const exchange = request.exchange;
    if (exchange == nullptr || exchange->subscription_.transfer() == nullptr ||
        exchange->steps_.step_ != server::Step::kRespond || !is_without_body(*exchange)) {
      return;
    }
    for (const auto& worker : proxy_.workers()) {
      for (const auto& fetch : worker->fetches()) {
        if (fetch->transfer_ == exchange->subscription_.transfer() && has_body_to_come(*fetch)) {
          on_fault_("a request whose answer has no body still reads the transfer");
        }
      }
    }
  });
}

// A transfer's readers are the requests that wait for it or read it, and nobody else.
void Held::look_at_readers() const {
  std::map<const server::Transfer*, std::uint64_t> readers;
  for (const auto& worker : proxy_.workers()) {
    for (const auto& fetch : worker->fetches()) {
      readers.try_emplace(fetch->transfer_.get(), 0);
    }
  }
  each_under_way(proxy_, [&](const UnderWay& request) {
    const server::Exchange* const exchange = request.exchange;
    if (exchange == nullptr || exchange->subscription_.transfer() == nullptr) return;
    ++readers[exchange->subscription_.transfer().get()];
  });
  look_at_bodiless();
  for (const auto& [transfer, count] : readers) {
    same(readers_of(*transfer), count, "readers of a transfer");
  }
}

// A place that counts as read keeps its segment from being reclaimed.
void Held::look_at_unread_disk() const {
  const disk::Disks* const disks = proxy_.shared().disks.get();
  if (disks == nullptr) return;
  for (const auto& service : disks->services_) {
    same(service->state_.readings.places().size(), 0, "places of a disk that are read");
  }
}

bool Held::is_quiet() const {
  for (const auto& worker : proxy_.workers()) {
    if (!worker->fetches().empty() || !worker->retired_fetches_.empty()) return false;
    // Requests that have ended give back their places when they are destroyed, in the next turn.
    if (!worker->retired_->is_empty()) return false;
  }
  bool quiet = true;
  each_under_way(proxy_, [&](const UnderWay& request) {
    quiet = quiet && request.exchange == nullptr && !request.has_reply;
  });
  return quiet;
}

void Held::look_at_rest() const {
  look();
  server::Shared& shared = proxy_.shared();
  std::uint64_t clients = 0;
  std::uint64_t origins = 0;
  std::uint64_t lingering = 0;
  std::uint64_t tunnels = 0;
  for (const auto& worker : proxy_.workers()) {
    clients += worker->stats().connections_open.get();
    lingering += lingering_at(*worker);
    origins += worker->stats().origin_connections.get();
    same(worker->stats().transfers_open.get(), 0, "transfers counted");
    same(worker->stats().dns_lookups.get(), 0, "lookups counted");
    same(worker->stats().origin_http2_streams_open.get(), 0, "streams to origins counted");
  }
  each_under_way(proxy_, [&](const UnderWay& each) { tunnels += each.has_tunnel ? 1U : 0U; });
  if (tunnels == 0) {
    const System::Sockets sockets = system_.proxy_sockets();
    same(sockets.clients + sockets.origins, clients + origins + lingering, "connections");
    same(shared.transfer_memory.bytes(), 0, "bytes of transfer memory");
  }
  same(seats_of(shared.transfers), tunnels, "requests under way, counted by client");
  same(shared.coding_memory.used(), 0, "bytes of encoders");
  for (const auto& shard : shared.inflight.shards_) {
    same(shard.transfers.size(), 0, "transfers that others may join");
  }
  for (const auto& server : server::server_reports(*proxy_.present_runtime())) {
    same(server.requests, 0, "requests under way at a server");
  }
  if (shared.disks != nullptr)
    same(shared.disks->common_->wanted.bodies_.size(), 0, "readers that want parts of disks");
  const cache::KernelStatistics kernel = shared.kernel->statistics();
  const store::StoreStats store = shared.store->stats();
  same(kernel.reserved_bytes, 0, "bytes reserved in the kernel");
  // Objects that are still to be written to a disk are kept for that.
  std::uint64_t unwritten = 0;
  if (shared.disks != nullptr) {
    for (const auto& each : shared.disks->statistics().disks) unwritten += each.waiting_bytes;
  }
  if (unwritten != 0) return;
  same(store.in_flight_bytes, 0, "bytes of bodies of no object");
  same(store.pinned_bytes, 0, "bytes of objects that are read and not stored");
}

}  // namespace encore::simulate

#include "tests/simulate/host.h"

#include <spdlog/spdlog.h>

#include <sstream>

#include "base/check.h"
#include "cache/replay.h"
#include "proxy/net/syscalls.h"
#include "proxy/process/worker.h"

namespace encore::simulate {
namespace {

Poller& poller_of(server::Worker& worker) {
  return *static_cast<Poller*>(static_cast<void*>(worker.loop().base()));
}

}  // namespace

Host::Host(System& system, const config::Config& config, OnFault on_fault)
    : system_(system), on_fault_(std::move(on_fault)) {
  // What goes wrong does so on purpose.
  spdlog::set_level(spdlog::level::off);
  // The proxy's own way into the kernel for these three is none that the linker knows.
  net::syscalls.recv = ::recv;
  net::syscalls.send = ::send;
  net::syscalls.sendmsg = ::sendmsg;
  seed_ = {.lo = system.random(), .hi = system.random()};
  const MonotonicTime now = monotonic_now();
  recorder_ = std::make_unique<cache::JournalRecorder>(
      cache::journal_head(server::kernel_options(config, seed_), now));
  auto made = server::Proxy::create(config, {.identity_seed = seed_,
                                             .started = now,
                                             .instance = "simulated",
                                             .workers = config.workers.count,
                                             .own = {},
                                             .observer = recorder_.get()});
  ENCORE_CHECK(made.has_value(), "a simulated proxy can be made");
  proxy_ = std::move(*made);
  for (std::size_t i = 0; i < proxy_->workers().size(); ++i) {
    server::Worker& worker = *proxy_->workers()[i];
    poller_of(worker).set_wake([this, i] { turn(i); });
    worker.begin();
    // What was posted before it began is waiting already.
    system_.wake_soon(poller_of(worker));
  }
}

Host::~Host() {
  if (proxy_ == nullptr) return;
  for (const auto& worker : proxy_->workers()) poller_of(*worker).set_wake([] {});
}

void Host::turn(std::size_t number) {
  server::Worker& worker = *proxy_->workers()[number];
  if (worker.turn()) return;
  worker.finish();
  poller_of(worker).set_wake([] {});
  ++workers_ended_;
}

void Host::tick() {
  proxy_->tick();
  take_journal();
}

void Host::reload(const config::Config& config) {
  if (auto done = proxy_->reload(config); !done) on_fault_("reload", done.error().message);
}

std::uint64_t Host::purge(const server::PurgeOrder& order) {
  return server::purge(proxy_->shared(), proxy_->config(), order);
}

void Host::drain() { proxy_->drain(); }

std::string Host::describe() const {
  std::string out;
  for (const auto& worker : proxy_->workers()) {
    const server::WorkerStats& stats = worker->stats();
    out += "a worker with " + std::to_string(stats.connections_open.get()) + " clients, " +
           std::to_string(stats.transfers_open.get()) + " transfers, " +
           std::to_string(stats.origin_connections.get()) + " origin connections\n";
  }
  return out;
}

void Host::look_at_gauges() {
  server::Shared& shared = proxy_->shared();
  const auto none = [&](std::uint64_t value, const char* what) {
    if (value != 0) on_fault_("leak", std::to_string(value) + " " + what + " left");
  };
  for (const auto& worker : proxy_->workers()) {
    const server::WorkerStats& stats = worker->stats();
    none(stats.connections_open.get(), "client connections counted");
    none(stats.origin_connections.get(), "origin connections counted");
    none(stats.transfers_open.get(), "transfers counted");
    none(stats.tunnels_open.get(), "tunnels counted");
    none(stats.dns_lookups.get(), "lookups counted");
    none(worker->fetches().size(), "fetches");
  }
  none(shared.connections.load(), "shared connections");
  none(shared.transfer_memory.bytes(), "bytes of transfer memory");
  none(shared.transfer_memory.clients(), "clients with an account of memory");
  const cache::KernelStatistics kernel = shared.kernel->statistics();
  none(kernel.reserved_bytes, "bytes reserved in the kernel");
}

void Host::take_journal() { journal_ += recorder_->take(); }

void Host::verify_journal() {
  take_journal();
  std::istringstream bytes(std::move(journal_));
  auto reader = cache::JournalReader::open(bytes);
  if (!reader) return on_fault_("journal", reader.error().message);
  auto replay = cache::Replay::create(reader->head(), seed_, [](std::uint64_t) { return ""; });
  if (!replay) return on_fault_("journal", replay.error().message);
  cache::Event event;
  while (true) {
    const auto next = reader->next(event);
    if (!next) return on_fault_("journal", next.error().message);
    if (*next == cache::JournalReader::Next::kEnd) break;
    ++decisions_;
    const auto difference = (*replay)->apply(event);
    if (!difference) return on_fault_("journal", difference.error().message);
    if (*difference) return on_fault_("journal", cache::describe(**difference));
  }
  const auto now = proxy_->shared().kernel->statistics();
  const auto then = (*replay)->kernel().statistics();
  if (now.objects != then.objects || now.used_bytes != then.used_bytes) {
    on_fault_("journal", "replayed to another number of objects or bytes");
  }
}

void Host::look_for_leaks() {
  look_at_gauges();
  verify_journal();
  for (const auto& worker : proxy_->workers()) poller_of(*worker).set_wake([] {});
  proxy_.reset();
  if (system_.descriptors() != 0) {
    on_fault_("leak", "descriptors are left:" + system_.describe_descriptors());
  }
}

}  // namespace encore::simulate

#include "tests/simulate/host.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <sstream>

#include "base/check.h"
#include "cache/replay.h"
#include "config/derive.h"
#include "filter/bloom_filter.h"
#include "proxy/net/syscalls.h"
#include "proxy/process/disk_start.h"
#include "proxy/process/worker.h"
#include "proxy/settings/router.h"
#include "proxy/transfer/response.h"
#include "tests/fuzz/proxy/loop.h"
#include "tests/simulate/held.h"
#include "tests/simulate/log_lines.h"

namespace encore::simulate {
namespace {

Poller& poller_of(server::Worker& worker) {
  return *static_cast<Poller*>(static_cast<void*>(worker.loop().base()));
}

// The URLs of all that is stored.
class Collector final : public cache::Visitor {
 public:
  explicit Collector(filter::BloomFilter& keys) : keys_(keys) {}
  cache::Verdict visit(const cache::EntryView& entry) override {
    if (entry.payload == 0) return cache::Verdict::kKeep;
    ++count_;
    const auto key = server::primary_key_of(store::ObjectRef::peek(entry.payload));
    keys_.add(key.substr(server::kRealmBytes));
    return cache::Verdict::kKeep;
  }
  std::uint64_t count() const { return count_; }

 private:
  filter::BloomFilter& keys_;
  std::uint64_t count_ = 0;
};

std::unique_ptr<disk::Disks> open_disks(const config::Config& config, const filter::Seed& seed,
                                        SlowDisk& disk) {
  if (config.disk.empty()) return nullptr;
  disk::DisksOptions options = server::disk_options(config, seed);
  disk.prepare(options);
  auto disks = disk::Disks::open(options);
  ENCORE_CHECK(disks.has_value(), "a simulated disk can be opened");
  return std::move(*disks);
}

}  // namespace

Host::Host(System& system, const config::Config& config, OnFault on_fault, const OnLog& on_log,
           SlowDisk& disk)
    : system_(system),
      disk_(disk),
      on_fault_(std::move(on_fault)),
      variants_max_(config.cache.variants_max) {
  started_ = proxyfuzz::now();
  // Errors are caused on purpose.
  spdlog::set_level(spdlog::level::off);
  // The proxy's own way into the kernel for these three is none that the linker knows.
  net::syscalls.recv = ::recv;
  net::syscalls.send = ::send;
  net::syscalls.sendmsg = ::sendmsg;
  // Keys on a disk are known by the seed that it was made with.
  if (!disk_.seed) disk_.seed = {.lo = system.random(), .hi = system.random()};
  seed_ = *disk_.seed;
  const MonotonicTime now = monotonic_now();
  std::unique_ptr<disk::Disks> disks = open_disks(config, seed_, disk_);
  recorder_ = std::make_unique<cache::JournalRecorder>(
      cache::journal_head(server::kernel_options(config, seed_, disks.get()), now));
  auto made = server::Proxy::create(config, {.identity_seed = seed_,
                                             .started = now,
                                             .instance = "simulated",
                                             .workers = config.workers.count,
                                             .own = {},
                                             .observer = recorder_.get(),
                                             .access_log = on_log ? make_log(on_log) : nullptr,
                                             .disks = std::move(disks)});
  ENCORE_CHECK(made.has_value(), "a simulated proxy can be made");
  proxy_ = std::move(*made);
  for (std::size_t i = 0; i < proxy_->workers().size(); ++i) {
    server::Worker& worker = *proxy_->workers()[i];
    poller_of(worker).set_wake([this, i] { turn(i); });
    worker.begin();
    // Tasks that were posted before it began are waiting already.
    system_.wake_soon(poller_of(worker));
  }
}

Host::~Host() {
  if (proxy_ == nullptr) return;
  for (const auto& worker : proxy_->workers()) poller_of(*worker).set_wake([] {});
}

void Host::turn(std::size_t number) {
  server::Worker& worker = *proxy_->workers()[number];
  const server::WorkerStats& stats = worker.stats();
  const std::uint64_t cut_before = stats.slow_readers_cut.get();
  const std::uint64_t revoked_before = stats.connections_revoked.get();
  const std::uint64_t failed_before = stats.memory_failures.get();
  const bool goes_on = worker.turn();
  const std::uint64_t cut = stats.slow_readers_cut.get() - cut_before;
  if (cut != 0 && on_readers_cut) on_readers_cut(cut);
  const std::uint64_t revoked = stats.connections_revoked.get() - revoked_before;
  if (revoked != 0 && on_revoked) on_revoked(revoked);
  if (stats.memory_failures.get() != failed_before && system_.on_trouble) {
    system_.on_trouble(System::NetworkFault::kShort);
  }
  if (goes_on) return;
  worker.finish();
  poller_of(worker).set_wake([] {});
  ++workers_ended_;
}

void Host::tick() {
  proxy_->tick();
  if (disk::Disks* const disks = proxy_->shared().disks.get()) disks->tick();
  if (publish::ChangedKeys* const changed = proxy_->shared().changed.get()) {
    changed->advance(wall_now());
  }
  take_journal();
}

std::string Host::save_hours() {
  publish::ChangedKeys* const changed = proxy_->shared().changed.get();
  return changed == nullptr ? std::string() : changed->save(wall_now());
}

bool Host::restore_hours(const std::string& bytes) {
  return proxy_->restore_changed(bytes).has_value();
}

void Host::look_at_resident() {
  const publish::ResidentKeys* const resident = proxy_->shared().resident.get();
  if (resident == nullptr) return;
  const auto published = resident->filter();
  auto held = filter::BloomFilter::create(*config::derive_resident_filter(config()));
  ENCORE_CHECK(published.has_value() && held.has_value(), "there is memory for what is resident");
  Collector collector(*held);
  cache::Kernel::Cursor cursor;
  const MonotonicTime now = monotonic_now();
  while (proxy_->shared().kernel->for_each(cursor, UINT32_MAX, collector, now)) {
  }
  const publish::ResidentKeys::Counts counts = resident->counts();
  if (counts.stored != collector.count()) {
    on_fault_("resident", std::to_string(counts.stored) + " responses are counted, " +
                              std::to_string(collector.count()) + " are stored");
  }
  const std::string bits = published->plain()->raw_bits();
  const std::string wanted = held->raw_bits();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if ((wanted[i] & ~bits[i]) != 0) on_fault_("resident", "a URL that is stored is missing");
  }
  // A counter that has reached 15 stays up for ever. In a large filter it takes many variants.
  constexpr std::uint64_t kLarge = 1000;
  const bool counts_all = variants_max_ <= 2 && config().filters.resident_capacity >= kLarge;
  if (counts_all && bits != wanted) on_fault_("resident", "a URL that is not stored is there");
}

void Host::reload(const config::Config& config) {
  if (auto done = proxy_->reload(config); !done) on_fault_("reload", done.error().message);
  variants_max_ = std::max(variants_max_, config.cache.variants_max);
}

std::uint64_t Host::purge(const server::PurgeOrder& order) {
  const server::PurgeResult purged =
      server::purge(proxy_->shared(), *proxy_->present_runtime(), order);
  if (!purged.durable && !disk_.has_failed()) on_fault_("purge", purged.durable.error().message);
  return purged.count;
}

std::uint64_t Host::stored() const {
  const cache::KernelStatistics kernel = proxy_->shared().kernel->statistics();
  return kernel.objects + kernel.disk.entries;
}

void Host::count_disk(
    const std::function<void(const char* what, std::uint64_t count)>& count) const {
  const disk::Disks* const disks = proxy_->shared().disks.get();
  if (disks == nullptr) return;
  for (const disk::DiskReport& each : disks->statistics().disks) {
    count("disk: bytes of new records", each.admit_bytes);
    count("disk: bytes of moved records", each.move_bytes);
    count("disk: reads", each.reads);
  }
}

void Host::drain() {
  drained_ = system_.now();
  proxy_->drain();
}

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

void Host::look_at_held() {
  const Held::OnFault on_fault = [this](const std::string& what) { on_fault_("held", what); };
  const Held held(*proxy_, system_, on_fault);
  held.look();
  if (disk_.reads_under_way() == 0) held.look_at_unread_disk();
}

void Host::look_at_bodiless() {
  const Held::OnFault on_fault = [this](const std::string& what) { on_fault_("held", what); };
  Held(*proxy_, system_, on_fault).look_at_bodiless();
}

bool Host::look_at_rest() {
  const Held::OnFault on_fault = [this](const std::string& what) {
    on_fault_("held", "at rest: " + what);
  };
  const Held held(*proxy_, system_, on_fault);
  if (!held.is_quiet()) return false;
  held.look_at_rest();
  return true;
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
    none(stats.upgrades_open.get(), "connections in other protocols counted");
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
    if (has_disk()) disk_.graves.note(event);
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

// All that it had to forget is forgotten on its disk as well.
void Host::look_at_graves() {
  if (!has_disk() || disk_.has_failed()) return;
  (void)disk_.graves.look(disk_.contents(),
                          [this](const std::string& what) { on_fault_("disk", what); });
}

void Host::look_for_leaks() {
  // Clients whose network is too slow for what they have asked for are cut at the limit.
  const Nanoseconds limit = proxy_->config().timeouts.drain;
  if (limit.count() == 0 || system_.now() - drained_ < limit.count()) look_at_gauges();
  // Records that were written are there for the next one.
  if (disk::Disks* const disks = proxy_->shared().disks.get()) {
    constexpr Nanoseconds kPatience = std::chrono::seconds(10);
    if (!disks->stop(kPatience) && !disk_.has_failed()) on_fault_("disk", "it does not stop");
  }
  verify_journal();
  look_at_graves();
  for (const auto& worker : proxy_->workers()) poller_of(*worker).set_wake([] {});
  proxy_.reset();
  if (system_.descriptors() != 0) {
    on_fault_("leak", "descriptors are left:" + system_.describe_descriptors());
  }
}

}  // namespace encore::simulate

// Proxy: a cache and the workers that serve from it, as one configuration describes them: kernel,
// store, transfers, listeners, and what a reload and a drain do to them. It starts no thread, takes
// no signal and opens no file. The owner of those runs its workers: Server on threads of the
// system, a simulation in turns of its own.
//
// Confined to one thread, but for what its parts say otherwise; the workers run on theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "base/time.h"
#include "cache/events.h"
#include "cache/options.h"
#include "config/config.h"
#include "proxy/net/address.h"
#include "proxy/observe/snapshot.h"
#include "proxy/process/certificate_watch.h"
#include "proxy/process/explain.h"
#include "proxy/process/shared.h"
#include "proxy/process/worker.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

class StoreLink;

// Returns the bytes that the store of a cache of so much memory may take from the system, transfers
// included.
std::uint64_t store_limit(const config::Config& config);

// The kernel's options as they follow from a loaded config. `identity_seed` is the keys' and, where
// the config names none, the filter's.
// `disks`: null where there are none.
cache::KernelOptions kernel_options(const config::Config& config, const filter::Seed& identity_seed,
                                    const disk::Disks* disks = nullptr);

class Proxy {
 public:
  struct Options {
    filter::Seed identity_seed;
    MonotonicTime started{};                     // by the kernel's clock
    std::string instance;                        // tells the proxies of one chain apart, in Via
    std::uint32_t workers = 1;                   // at least one
    std::vector<net::Address> own = {};          // this process' addresses, without its listeners'
    cache::Observer* observer = nullptr;         // observes decisions; borrowed; null: none
    std::unique_ptr<LogWriter> access_log = {};  // null: none
    std::unique_ptr<disk::Disks> disks = {};     // null: none
    // From the process that this one replaces; empty: there is none.
    std::vector<Listeners::Inherited> inherited = {};
    std::shared_ptr<net::TlsTickets> tickets = {};  // null: new ones
  };

  // Makes all of it and binds the listeners; nothing is served before the workers run. `config` is
  // loaded. Errors: addresses in use, certificates that cannot be read, memory.
  static Result<std::unique_ptr<Proxy>> create(const config::Config& config, Options options);
  // Ends what a drain has left. REQUIRES: no worker runs.
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Takes another configuration over: all of it, or after an error nothing.
  Result<void> reload(const config::Config& config);
  // Goes on with the hours of changes that were saved. Errors: damaged; nothing has changed then.
  // REQUIRES: shared().changed; no worker runs.
  Result<void> restore_changed(std::string_view bytes);
  // Work that no request waits for, in small steps: memory that a reload has taken, pages half
  // empty. To be called a few times a second.
  void tick();
  // Decrypts again the clients that go through unread because they refused our certificate. Returns
  // how many were known. Any thread.
  std::size_t clear_rejections(const Rejections::Which& which);
  // Each worker accepts no more and ends when its requests have, or after
  // timeouts.drain. Worker::start() tells when.
  void drain();
  // The same where another process has the listeners: clients learn it from a response, and have
  // the time of [upgrade].
  void hand_over();
  // Any thread that has a loop does not do: the main one. Calls `taken` on `loop` with the sockets
  // of all workers, listener by listener.
  void duplicate_sockets(net::Loop& loop,
                         std::function<void(std::vector<Listeners::Inherited>)> taken);
  // The listeners are this process' alone: closes those that no listener has taken, and opens more
  // where workers have none.
  void complete_listeners();

  // All that its workers, its cache and its store have counted. Any thread.
  Snapshot snapshot() const;
  // The same without the servers of origins: numbers alone, for who looks often.
  Snapshot sample() const;

  // Explains how a request would be handled. Changes nothing. Errors: those of server::explain().
  // Any thread.
  Result<Explanation> explain(const Explained& request) const;

  Shared& shared() { return shared_; }
  const config::Config& config() const { return config_; }
  // The runtime of the present configuration. Any thread.
  std::shared_ptr<const Runtime> present_runtime() const;
  std::span<const std::unique_ptr<Worker>> workers() const { return workers_; }
  // The bound addresses, in the order of the config's listeners; 0.0.0.0:0 for Unix sockets.
  const std::vector<net::Address>& listening() const { return listening_; }

 private:
  Snapshot count() const;
  Proxy(const config::Config& config, const Options& options);
  Result<void> make_cache(Options& options);
  Result<void> make_published();
  Result<void> make_workers(const Options& options);
  Result<void> listen(std::vector<Listeners::Inherited> inherited);
  Result<std::shared_ptr<const Runtime>> make_runtime(const config::Config& config,
                                                      const Listeners::Plan& plan) const;
  Result<ShadowCaches::Prepared> prepare_shadows(const config::Config& config) const;
  void tune_probation();
  void adopt(Listeners::Plan plan, const std::shared_ptr<const Runtime>& runtime);
  void reclaim();
  void keep_runtime(std::shared_ptr<const Runtime> runtime);
  std::shared_ptr<const TlsListeners> present_tls() const;
  void check_certificates();

  config::Config config_;
  const std::string instance_;
  mutable Mutex runtime_mutex_;
  std::shared_ptr<const Runtime> runtime_ ENCORE_GUARDED_BY(runtime_mutex_);  // made from config_
  // The runtime's, or with newer certificates.
  std::shared_ptr<const TlsListeners> tls_ ENCORE_GUARDED_BY(runtime_mutex_);
  Shared shared_;
  std::unique_ptr<StoreLink> store_link_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Listeners> listeners_;
  std::vector<net::Address> listening_;
  CertificateWatch certificates_;
  std::optional<cache::ProbationTuning> tuning_;         // by the samples that are taken
  std::optional<cache::KernelOptions> derived_options_;  // made from config_; empty: not derived
                                                         // yet
  const std::vector<net::Address> own_;                  // in addition to those of the listeners
};

}  // namespace encore::server

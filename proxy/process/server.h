// Server: the process around a Proxy. It gives the workers their threads, has the logs, the state
// on disk and the admin listener, takes signals, reloads, and ends in order. Confined to the main
// thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cache/journal.h"
#include "config/config.h"
#include "config/network.h"
#include "proxy/net/loop.h"
#include "proxy/net/signals.h"
#include "proxy/net/timer.h"
#include "proxy/process/admin.h"
#include "proxy/process/admin_listeners.h"
#include "proxy/process/disk_watch.h"
#include "proxy/process/fleet_purges.h"
#include "proxy/process/jobs.h"
#include "proxy/process/live_observer.h"
#include "proxy/process/proxy.h"
#include "proxy/process/request_followers.h"
#include "proxy/process/served_memory.h"
#include "proxy/process/state.h"
#include "proxy/process/upgrade_coordinator.h"

namespace encore::server {

// Orders of the command line for a start.
struct StartOrders {
  struct AdoptFrom {
    config::ServerUrl url;
    std::string token_file;
  };
  // The memory of this peer is fetched and adopted before anything is served; failures of that are
  // in the log, and no error.
  std::optional<AdoptFrom> adopt_from = {};
  bool clear_disks = false;          // their contents are deleted
  SuccessionOrders succession = {};  // neither is done where a process is replaced
};

class Server final : private ProcessControl {
 public:
  // Reads the config again, from where it came.
  using LoadConfig = std::function<Result<config::Config>()>;

  // Binds everything; nothing is served yet. Errors: addresses in use, files that cannot be
  // opened, state that is damaged is reported and left behind.
  static Result<std::unique_ptr<Server>> create(const config::Config& config, LoadConfig load,
                                                StartOrders orders = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  enum class End : std::uint8_t {
    kDrained,
    // By a second signal: threads may still run, and nothing waits for them. The process is to end
    // without destroying the server.
    kCutShort,
  };
  // Serves until SIGTERM or SIGINT, then drains. The admin listener answers until the end of it,
  // which its requests may put off until the drain's time is up.
  End run();

 private:
  // Used while the proxy is made.
  struct Start {
    const config::Config& config;
    const StartOrders& orders;
    Proxy::Options options;
    FleetPurges::Start fleet = {};
  };
  Server(LoadConfig load, StartOrders& orders);
  Result<void> make(const config::Config& config, const StartOrders& orders);
  Result<void> make_seed(Start& start);
  Result<void> make_logs(Start& start);
  Result<void> make_admin(Start& start);
  Result<void> make_proxy(Start& start);

  // ProcessControl. A purge runs on the jobs' thread.
  const config::Config& config() const override { return proxy_->config(); }
  bool is_ready() const override { return ready_; }
  Snapshot snapshot() const override { return proxy_->snapshot(); }
  ProcessStatus status() const override;
  const LiveSource& live() const override { return watch_; }
  publish::Resources* published() const override { return proxy_->shared().published.get(); }
  bool purge(PurgeOrder order, std::move_only_function<void(const PurgeResult&)> done) override;

  std::size_t clear_rejections(const Rejections::Which& which) override {
    return proxy_->clear_rejections(which);
  }
  MemoryHandover& memory() override { return memory_; }
  Result<Explanation> explain(const Explained& request) const override {
    return proxy_->explain(request);
  }
  void reload(std::move_only_function<void(const Result<void>&)> done) override;
  void drain() override;
  void upgrade(Upgrade::Done done) override;
  RequestFollowers& followers() override { return *followers_; }

  void on_signal(int signal);
  Result<void> try_reload();
  void tick();
  void worker_ended();
  void end_if_done();

  LoadConfig load_;
  std::unique_ptr<cache::JournalRecorder> journal_;
  std::unique_ptr<LogWriter> journal_log_;
  std::optional<StateDirectory> state_;  // set if one is configured
  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<Proxy> proxy_;
  DiskWatch disk_watch_;
  ServedMemory memory_;
  std::unique_ptr<net::Signals> signals_;
  std::unique_ptr<net::Timer> timer_;
  std::unique_ptr<net::Timer> drain_;  // runs until a drain may take no longer
  AdminListeners admin_;
  std::unique_ptr<RequestFollowers> followers_;
  std::unique_ptr<Jobs> jobs_;
  UpgradeCoordinator succession_;
  std::unique_ptr<FleetPurges> fleet_;  // null: this node is in none
  bool ready_ = false;
  bool is_ending_ = false;  // drains as by SIGTERM
  End end_ = End::kDrained;
  std::size_t workers_ended_ = 0;
  bool saving_ = false;
  bool hour_over_ = false;  // an hour of changes: it is to be saved
  MonotonicTime started_{};
  MonotonicTime saved_{};
  LiveObserver watch_;
  std::uint64_t reload_attempts_ = 0;
  std::uint64_t reloads_ = 0;
  std::uint64_t reload_failures_ = 0;
};

}  // namespace encore::server

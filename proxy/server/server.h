// Server: the process. It composes kernel, store, workers, logs and the admin listener from a
// config, takes signals, reloads, saves state, and ends in order. Confined to the main thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cache/journal.h"
#include "config/config.h"
#include "proxy/net/admin_server.h"
#include "proxy/net/loop.h"
#include "proxy/net/signals.h"
#include "proxy/net/timer.h"
#include "proxy/server/jobs.h"
#include "proxy/server/purge.h"
#include "proxy/server/runtime.h"
#include "proxy/server/shared.h"
#include "proxy/server/state.h"
#include "proxy/server/worker.h"

namespace encore::server {

class StoreLink;

// What the store of a cache of so much memory may take from the system, transfers included.
std::uint64_t store_limit(const config::Config& config);

class Server {
 public:
  // Reads the config again, from where it came.
  using LoadConfig = std::function<Result<config::Config>()>;

  // Binds everything; nothing is served yet. Errors: addresses in use, files that cannot be
  // opened, state that is damaged is reported and left behind.
  static Result<std::unique_ptr<Server>> create(const config::Config& config, LoadConfig load);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until SIGTERM or SIGINT, then drains. The admin listener answers until the end of it.
  void run();

  // Purges on the jobs' thread and calls `done` with how many there were. False where too many
  // orders wait, or the end is near.
  bool purge(PurgeOrder order, std::move_only_function<void(std::uint64_t)> done);

  Shared& shared() { return shared_; }
  const config::Config& config() const { return config_; }
  const std::vector<net::Address>& listening() const { return listening_; }
  bool is_ready() const { return ready_; }
  std::size_t worker_count() const { return workers_.size(); }
  MonotonicTime started() const { return started_; }
  std::uint64_t reloads() const { return reloads_; }
  std::uint64_t reload_failures() const { return reload_failures_; }

 private:
  Server(const config::Config& config, LoadConfig load);
  Result<void> make_logs();
  Result<void> make_seeds();
  Result<void> make_cache();
  Result<void> make_workers();
  void limit_connections();
  Result<void> make_admin();
  cache::KernelOptions kernel_options(const config::Config& config) const;
  void on_signal(int signal);
  void reload();
  void tick();
  void load_state();
  void save_state(net::Loop::Function done);
  void begin_drain();
  void worker_ended();
  void reclaim(MonotonicTime now);
  void write_journal();

  config::Config config_;
  LoadConfig load_;
  Shared shared_;
  std::unique_ptr<StoreLink> store_link_;
  std::unique_ptr<cache::JournalRecorder> journal_;
  std::unique_ptr<LogWriter> journal_log_;
  std::optional<StateDirectory> state_;  // where one is configured
  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<net::Signals> signals_;
  std::unique_ptr<net::Timer> timer_;
  std::unique_ptr<net::AdminServer> admin_;
  std::unique_ptr<Jobs> jobs_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<net::Address> listening_;
  std::vector<net::Address> own_;
  std::string instance_;
  filter::Seed filter_seed_{};
  bool ready_ = false;
  std::size_t workers_ended_ = 0;
  bool saving_ = false;
  MonotonicTime started_{};
  MonotonicTime saved_{};
  std::uint64_t reloads_ = 0;
  std::uint64_t reload_failures_ = 0;
};

}  // namespace encore::server

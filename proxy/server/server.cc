#include "proxy/server/server.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "base/check.h"
#include "config/derive.h"
#include "config/dump.h"
#include "config/network.h"
#include "proxy/server/admin.h"
#include "proxy/server/state.h"
#include "proxy/server/store_link.h"

namespace encore::server {
namespace {

net::Address to_address(const std::string& text) {
  const auto endpoint = config::parse_endpoint(text);
  ENCORE_CHECK(endpoint.has_value(), "a loaded config has valid addresses");
  const auto address = net::Address::parse_ip(endpoint->address, endpoint->port);
  ENCORE_CHECK(address.has_value(), "a loaded config has numeric addresses");
  return *address;
}

spdlog::level::level_enum level_of(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::kTrace:
      return spdlog::level::trace;
    case config::LogLevel::kDebug:
      return spdlog::level::debug;
    case config::LogLevel::kInfo:
      return spdlog::level::info;
    case config::LogLevel::kWarn:
      return spdlog::level::warn;
    case config::LogLevel::kError:
      return spdlog::level::err;
    case config::LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

}  // namespace

// The store may hold this much more than the cache's memory: a twentieth for what its slabs do not
// fill, and room for transfers in flight.
std::uint64_t store_limit(const config::Config& config) {
  const std::uint64_t memory = config.cache.memory_bytes;
  return memory + memory / 20 + memory / 4 + config.limits.transfer_memory_bytes;
}

Server::Server(const config::Config& config, LoadConfig load)
    : config_(config), load_(std::move(load)), started_(monotonic_now()) {}

Server::~Server() {
  admin_.reset();
  signals_.reset();
  timer_.reset();
  jobs_.reset();
  for (auto& worker : workers_) worker->end_all();
  workers_.clear();
  if (shared_.store != nullptr) shared_.store->set_relocator(nullptr);
  shared_.kernel.reset();
}

Result<std::unique_ptr<Server>> Server::create(const config::Config& config, LoadConfig load) {
  std::unique_ptr<Server> server(new Server(config, std::move(load)));
  // Standard output may carry the access log.
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "", std::make_shared<spdlog::sinks::stderr_color_sink_mt>()));
  spdlog::set_level(level_of(config.log.level));
  auto loop = net::Loop::create();
  if (!loop) return std::unexpected(loop.error());
  server->loop_ = std::move(*loop);
  const auto steps = {&Server::make_seeds, &Server::make_logs, &Server::make_cache,
                      &Server::make_admin, &Server::make_workers};
  for (const auto step : steps) {
    if (auto done = (server.get()->*step)(); !done) return std::unexpected(done.error());
  }
  return server;
}

Result<void> Server::make_seeds() {
  auto random = random_seed();
  if (!random) return std::unexpected(random.error());
  // Six hex digits: enough to tell the proxies of one chain apart.
  instance_ = filter::to_hex(*random).substr(0, 6);
  auto seed = random_seed();
  if (!seed) return std::unexpected(seed.error());
  shared_.identity_seed = *seed;
  if (!config_.admission.seed.empty()) {
    const auto configured = filter::parse_seed(config_.admission.seed);
    ENCORE_CHECK(configured.has_value(), "a loaded config has a valid seed");
    shared_.identity_seed = *configured;
  }
  if (!config_.state.directory.empty()) {
    auto directory = StateDirectory::open(config_.state.directory);
    if (!directory) return std::unexpected(directory.error());
    state_ = std::move(*directory);
    auto kept = state_->load_seed();
    if (config_.admission.seed.empty()) {
      if (!kept) return std::unexpected(kept.error());
      if (*kept) shared_.identity_seed = **kept;
    }
    // What is there already need not be written: the disk may be full.
    const bool known = kept && *kept && **kept == shared_.identity_seed;
    if (!known) {
      if (auto saved = state_->save_seed(shared_.identity_seed); !saved) return saved;
    }
  }
  filter_seed_ = shared_.identity_seed;
  return {};
}

Result<void> Server::make_logs() {
  if (!config_.log.access.empty()) {
    auto log = LogWriter::open(config_.log.access);
    if (!log) return std::unexpected(log.error());
    shared_.access_log = std::move(*log);
  }
  if (!config_.log.decisions.empty()) {
    ::unlink(config_.log.decisions.c_str());  // a journal has one head
    auto log = LogWriter::open(config_.log.decisions);
    if (!log) return std::unexpected(log.error());
    journal_log_ = std::move(*log);
  }
  return {};
}

cache::KernelOptions Server::kernel_options(const config::Config& config) const {
  auto options = config::kernel_options(config);
  ENCORE_CHECK(options.has_value(), "a loaded config has a filter that can be made");
  options->identity_seed = shared_.identity_seed;
  if (config.admission.seed.empty()) options->admission.filter.seed = filter_seed_;
  return *options;
}

Result<void> Server::make_cache() {
  auto store = store::make_memory_store({.limit_bytes = store_limit(config_)});
  if (!store) return std::unexpected(store.error());
  shared_.store = std::move(*store);
  store_link_ = std::make_unique<StoreLink>(*shared_.store, shared_.identity_seed);
  const cache::KernelOptions options = kernel_options(config_);
  const MonotonicTime now = monotonic_now();
  if (journal_log_ != nullptr) {
    journal_ = std::make_unique<cache::JournalRecorder>(cache::journal_head(options, now));
  }
  auto kernel =
      cache::Kernel::create(options, {.owner = store_link_.get(), .observer = journal_.get()}, now);
  if (!kernel) return std::unexpected(kernel.error());
  shared_.kernel = std::move(*kernel);
  store_link_->connect(shared_.kernel.get());
  shared_.store->set_relocator(store_link_.get());
  load_state();
  return {};
}

Result<void> Server::make_workers() {
  const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::uint32_t count = config::effective_workers(config_.workers, cores);
  auto first_runtime = Runtime::create(config_, {}, instance_);
  if (!first_runtime) return std::unexpected(first_runtime.error());
  for (std::uint32_t i = 0; i < count; ++i) {
    shared_.stats.push_back(std::make_unique<WorkerStats>());
    auto worker = Worker::create(shared_, *shared_.stats.back(), *first_runtime);
    if (!worker) return std::unexpected(worker.error());
    shared_.workers.push_back(worker->get());
    workers_.push_back(std::move(*worker));
  }
  for (const config::Listen& listen : config_.listen) {
    net::Address address = to_address(listen.address);
    if (auto unused = net::Listener::check_unused(address); !unused) return unused;
    for (auto& worker : workers_) {
      auto bound = worker->listen(address, listen.mode);
      if (!bound) return std::unexpected(bound.error());
      address = *bound;  // port 0: all workers take the port that the first was given
    }
    listening_.push_back(address);
    own_.push_back(address);
  }
  auto runtime = Runtime::create(config_, own_, instance_);
  if (!runtime) return std::unexpected(runtime.error());
  for (auto& worker : workers_) worker->set_runtime(*runtime);
  limit_connections();
  return {};
}

// Every client may need a descriptor for its connection and one for that to its origin. More
// clients than that would leave none of them served.
void Server::limit_connections() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  // The lowest free one tells how many are in use; some are left for the admin pages and files.
  constexpr rlim_t kOthers = 8;
  const int lowest_free = ::dup(STDERR_FILENO);
  if (lowest_free < 0) return;
  ::close(lowest_free);
  const rlim_t used = static_cast<rlim_t>(lowest_free) + kOthers;
  shared_.descriptors = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
  if (shared_.connections_max() >= config_.limits.connections) return;
  spdlog::warn("{} file descriptors allow {} client connections, fewer than limits.connections {}",
               limit.rlim_cur, shared_.connections_max(), config_.limits.connections);
}

Result<void> Server::make_admin() {
  if (config_.admin.address.empty()) return {};
  net::AdminServer::Options options;
  options.address = to_address(config_.admin.address);
  auto admin = net::AdminServer::create(
      *loop_, options, [this](const net::AdminRequest& request, net::AdminReply to) {
        answer_admin(*this, request, std::move(to));
      });
  if (!admin) return std::unexpected(admin.error());
  admin_ = std::move(*admin);
  own_.push_back(admin_->address());
  return {};
}

void Server::run() {
  timer_ = std::make_unique<net::Timer>(*loop_, [this] { tick(); });
  timer_->start_periodic(std::chrono::milliseconds(250));
  saved_ = monotonic_now();
  jobs_ = std::make_unique<Jobs>(*loop_, [this] {
    // In the next turn: in this one a page may still be on its way out.
    if (workers_ended_ == workers_.size()) loop_->post([this] { loop_->stop(); });
  });
  for (auto& worker : workers_) {
    worker->start([this] { loop_->post([this] { worker_ended(); }); });
  }
  // All threads are started: the signals stay with this one.
  signals_ = std::make_unique<net::Signals>(
      *loop_, std::initializer_list<int>{SIGTERM, SIGINT, SIGHUP, SIGUSR1},
      [this](int signal) { on_signal(signal); });
  ready_ = true;
  for (std::size_t i = 0; i < listening_.size(); ++i) {
    spdlog::info("listening on {} ({})", listening_[i].to_string(),
                 config_.listen[i].mode == config::Mode::kForward ? "forward" : "reverse");
  }
  if (admin_ != nullptr) spdlog::info("admin on {}", admin_->address().to_string());
  spdlog::info("ready: {} workers, seed {}", workers_.size(),
               filter::fingerprint(shared_.identity_seed));
  loop_->run();
  write_journal();
  spdlog::info("ended");
}

void Server::on_signal(int signal) {
  switch (signal) {
    case SIGHUP:
      if (ready_) {
        reload();
      } else {
        spdlog::warn("reload refused: this process is ending");
      }
      return;
    case SIGUSR1:
      if (shared_.access_log != nullptr) shared_.access_log->reopen();
      return;
    default:
      begin_drain();
  }
}

// The loop goes on: whoever watches learns that this is a drain, not a crash.
void Server::begin_drain() {
  if (!ready_) return;
  ready_ = false;
  shared_.draining.store(true, std::memory_order_relaxed);
  spdlog::info("draining");
  for (auto& worker : workers_) worker->drain(config_.timeouts.drain);
}

// With the last of them nothing is learnt any more: what is saved now is all. The loop ends when
// the jobs have.
void Server::worker_ended() {
  if (++workers_ended_ < workers_.size()) return;
  for (auto& worker : workers_) worker->join();
  save_state([] {});
}

// All or nothing: whatever fails, the running configuration stays as it is.
void Server::reload() {
  auto wanted = load_();
  if (!wanted) {
    ++reload_failures_;
    spdlog::error("reload refused, nothing has changed:\n{}", wanted.error().message);
    return;
  }
  const std::vector<std::string> blockers = config::reload_blockers(config_, *wanted);
  if (!blockers.empty()) {
    ++reload_failures_;
    std::string keys;
    for (const std::string& key : blockers) keys += (keys.empty() ? "" : ", ") + key;
    spdlog::error("reload refused, nothing has changed: a restart is needed for {}", keys);
    return;
  }
  const std::uint64_t limit = store_limit(*wanted);
  if (limit > shared_.store->limit_bytes_max()) {
    ++reload_failures_;
    spdlog::error(
        "reload refused, nothing has changed: a restart is needed for so much cache.memory");
    return;
  }
  auto runtime = Runtime::create(*wanted, own_, instance_);
  if (!runtime) {
    ++reload_failures_;
    spdlog::error("reload refused, nothing has changed: {}", runtime.error().message);
    return;
  }
  const cache::ReloadOptions options = cache::reload_options(kernel_options(*wanted));
  if (auto done = shared_.kernel->reconfigure(options, monotonic_now()); !done) {
    ++reload_failures_;
    spdlog::error("reload refused, nothing has changed: {}", done.error().message);
    return;
  }
  // A lower limit follows when the kernel has evicted down to it.
  if (limit > shared_.store->stats().limit_bytes) shared_.store->set_limit(limit);
  config_ = *wanted;
  spdlog::set_level(level_of(config_.log.level));
  for (auto& worker : workers_) worker->set_runtime(*runtime);
  ++reloads_;
  spdlog::info("reloaded");
}

// Work that no request waits for, in small steps.
void Server::tick() {
  const MonotonicTime now = loop_->now();
  reclaim(now);
  (void)shared_.store->maintain(256);
  write_journal();
  const Nanoseconds interval = config_.state.save_interval;
  if (ready_ && !saving_ && interval.count() != 0 && now - saved_ >= interval) {
    saved_ = now;
    saving_ = true;
    save_state([this] { saving_ = false; });
  }
}

// After a reload to less memory: evicts for a share of the tick's time, a few under each lock.
void Server::reclaim(MonotonicTime now) {
  constexpr std::uint32_t kVictims = 64;
  constexpr std::chrono::milliseconds kShare(25);
  bool more = shared_.kernel->reclaim(kVictims, now);
  while (more && monotonic_now() - now < kShare) more = shared_.kernel->reclaim(kVictims, now);
  const std::uint64_t limit = store_limit(config_);
  if (!more && limit < shared_.store->stats().limit_bytes) shared_.store->set_limit(limit);
}

void Server::write_journal() {
  if (journal_ == nullptr) return;
  std::string bytes = journal_->take();
  if (bytes.empty()) return;
  if (!journal_log_->hand_over(bytes)) spdlog::error("decision journal: records were dropped");
}

void Server::load_state() {
  if (!state_) return;
  auto bytes = state_->load_admission();
  if (!bytes) {
    spdlog::warn("{}; starting with nothing remembered", bytes.error().message);
    return;
  }
  if (!*bytes) return;
  if (auto done = shared_.kernel->restore_admission(**bytes, monotonic_now()); !done) {
    spdlog::warn("{}: {}; starting with nothing remembered", state_->admission_path(),
                 done.error().message);
    return;
  }
  spdlog::info("restored {} bytes of admission state", (*bytes)->size());
}

// Writing and syncing takes what the disk takes. A reload may change the config meanwhile.
void Server::save_state(net::Loop::Function done) {
  const bool wanted = state_ && cache::has_filter(config_.admission.policy);
  const auto save = [this, wanted] {
    if (!wanted) return;
    const auto saved = state_->save_admission(shared_.kernel->save_admission(monotonic_now()));
    if (!saved) spdlog::error("state not saved: {}", saved.error().message);
  };
  jobs_->submit(save, std::move(done));
}

bool Server::purge(PurgeOrder order, std::move_only_function<void(std::uint64_t)> done) {
  // Each may be a mebibyte, as the admin listener takes it, and take seconds.
  constexpr std::size_t kJobsMax = 32;
  if (jobs_ == nullptr || jobs_->count() >= kJobsMax || workers_ended_ == workers_.size()) {
    return false;
  }
  auto count = std::make_shared<std::uint64_t>(0);
  auto work = [this, count, order = std::move(order), config = config_] {
    *count = server::purge(shared_, config, order);
  };
  jobs_->submit(std::move(work), [count, done = std::move(done)]() mutable { done(*count); });
  return true;
}

}  // namespace encore::server

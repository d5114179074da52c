#include "proxy/process/server.h"

#include <fmt/core.h>
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
#include "proxy/observe/log.h"
#include "proxy/process/disk_start.h"
#include "proxy/process/peer_fetch.h"
#include "proxy/process/state.h"
#include "proxy/settings/names.h"

namespace encore::server {
namespace {

// For what waits to be written at the end: of a disk that answers it is a fraction of a second.
constexpr Nanoseconds kDiskPatience = std::chrono::seconds(10);

spdlog::level::level_enum level_of(config::LogLevel level) {
  switch (level) {
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

// Returns the limit that the descriptors allow; the text says if that is less than what is wanted.
std::string limit_connections(Shared& shared, std::uint32_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  // The lowest free one tells how many are in use; some are left for the admin pages and files.
  constexpr rlim_t kOthers = 8;
  const int lowest_free = ::dup(STDERR_FILENO);
  if (lowest_free < 0) return {};
  ::close(lowest_free);
  const rlim_t used = static_cast<rlim_t>(lowest_free) + kOthers;
  shared.descriptors = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
  if (shared.connections_max() >= wanted) return {};
  return fmt::format(
      "{} file descriptors allow {} client connections, fewer than limits.connections {}",
      limit.rlim_cur, shared.connections_max(), wanted);
}

// Before anything is served: what the disks hold may be older than an edit of while this process
// was down.
Result<void> purge_at_start(Proxy& proxy) {
  if (!proxy.config().cache.purge_at_start || proxy.shared().disks == nullptr) return {};
  const PurgeResult purged = purge(proxy.shared(), *proxy.present_runtime(), {.all = true});
  if (!purged.durable) return fail("cache.purge_at_start: " + purged.durable.error().message);
  log::info("cache.purge_at_start: purging all disks");
  return {};
}

// Writes its records to its file; null: there is no journal.
void write_journal(cache::JournalRecorder* journal, LogWriter* log) {
  if (journal == nullptr) return;
  std::string bytes = journal->take();
  if (bytes.empty()) return;
  if (!log->hand_over(bytes)) log::error("decision journal: records were dropped");
}

// The hours of changes that were saved.
void load_changed(const StateDirectory& state, Proxy& proxy) {
  if (proxy.shared().changed == nullptr) return;
  auto bytes = state.load_changed();
  if (!bytes) {
    log::warn("{}; no hourly filter was restored", bytes.error().message);
    return;
  }
  if (!*bytes) return;
  if (auto done = proxy.restore_changed(**bytes); !done) {
    log::warn("{}: {}; no hourly filter was restored", state.changed_path(), done.error().message);
  }
}

void watch_disks(Proxy& proxy, DiskWatch& watch) {
  const disk::Disks* const disks = proxy.shared().disks.get();
  if (disks == nullptr) return;
  watch.look(disks->statistics(), proxy.config().admission.policy == config::Policy::kProbation);
}

void load_state(const std::optional<StateDirectory>& state, Proxy& proxy) {
  if (!state) return;
  load_changed(*state, proxy);
  auto bytes = state->load_admission();
  if (!bytes) {
    log::warn("{}; starting with an empty filter", bytes.error().message);
    return;
  }
  if (!*bytes) return;
  if (auto done = proxy.shared().kernel->restore_admission(**bytes, monotonic_now()); !done) {
    log::warn("{}: {}; starting with an empty filter", state->admission_path(),
              done.error().message);
    return;
  }
  log::info("restored {} bytes of admission state", (*bytes)->size());
}

// A token that is no secret is the operator's error; all else is the network's, and no reason not
// to serve.
Result<void> adopt_from(const StartOrders::AdoptFrom& neighbour, const config::Config& config,
                        ServedMemory& memory) {
  const auto token = Token::read(neighbour.token_file);
  if (!token) return std::unexpected(token.error());
  const std::uint64_t most = config.admission.adopted_memory_bytes;
  const auto bytes = fetch({.url = neighbour.url,
                            .authorization = token->field(),
                            .ca_file = config.upstream.tls_ca_file,
                            .names = resolver_options(config.upstream),
                            .bytes_max = most == 0 ? 0 : most + kSavedFormBytes,
                            .bound_by = ", as admission.adopted_memory has it"});
  if (bytes) {
    (void)memory.adopt_now(*bytes);
  } else {
    log::warn("no filter was adopted: {}", bytes.error().message);
  }
  return {};
}

// Writing and syncing takes what the disk takes. A reload may change the config meanwhile.
void save_state(const std::optional<StateDirectory>& state, Proxy& proxy, Jobs& jobs,
                net::Loop::Function done) {
  const bool wanted = state && cache::has_filter(proxy.config().admission.policy);
  const auto save = [&state, &proxy, wanted] {
    Shared& shared = proxy.shared();
    if (state && shared.changed != nullptr) {
      const auto saved = state->save_changed(shared.changed->save(wall_now()));
      if (!saved) log::error("cannot save the hourly filters: {}", saved.error().message);
    }
    if (!wanted) return;
    const auto saved = state->save_admission(shared.kernel->save_admission(monotonic_now()));
    if (!saved) log::error("cannot save the state: {}", saved.error().message);
  };
  jobs.submit(save, std::move(done));
}

// False: there are many already, or the end is near.
bool takes_jobs(const std::unique_ptr<Jobs>& jobs, const Proxy& proxy, std::size_t workers_ended) {
  // Each may be a mebibyte, as the admin listener takes it, and take seconds.
  constexpr std::size_t kJobsMax = 32;
  return jobs != nullptr && jobs->count() < kJobsMax && workers_ended != proxy.workers().size();
}

}  // namespace

Server::Server(LoadConfig load, StartOrders& orders)
    : load_(std::move(load)),
      memory_(proxy_,
              [this](auto work, auto done) {
                if (!takes_jobs(jobs_, *proxy_, workers_ended_)) return false;
                jobs_->submit(std::move(work), std::move(done));
                return true;
              }),
      succession_({.loop = loop_,
                   .jobs = jobs_,
                   .proxy = proxy_,
                   .admin = admin_,
                   .state = state_,
                   .load_state = [this] { load_state(state_, *proxy_); },
                   .on_handed_over =
                       [this] {
                         ready_ = false;
                         watch_.set_ready(false);
                         drain_->start(config().timeouts.drain);
                         followers_->end();
                         if (fleet_ != nullptr) fleet_->hand_over();
                       },
                   .on_end_wanted = [this] { drain(); },
                   .on_predecessor_end =
                       [this] {
                         if (is_ending_) end_if_done();
                       }},
                  std::move(orders.succession)),
      started_(monotonic_now()),
      watch_(proxy_, started_, wall_now()) {}

Server::~Server() {
  fleet_.reset();
  admin_.close();
  succession_.stop();
  signals_.reset();
  timer_.reset();
  drain_.reset();
  jobs_.reset();
}

Result<std::unique_ptr<Server>> Server::create(const config::Config& config, LoadConfig load,
                                               StartOrders orders) {
  std::unique_ptr<Server> server(new Server(std::move(load), orders));
  // Standard output may carry the access log.
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "", std::make_shared<spdlog::sinks::stderr_color_sink_mt>()));
  spdlog::set_level(level_of(config.log.level));
  if (auto made = server->succession_.receive(config); !made) {
    return std::unexpected(made.error());
  }
  auto made = server->make(config, orders);
  if (made) return server;
  server->succession_.refuse(made.error());
  return std::unexpected(made.error());
}

Result<void> Server::make(const config::Config& config, const StartOrders& orders) {
  auto loop = net::Loop::create();
  if (!loop) return std::unexpected(loop.error());
  loop_ = std::move(*loop);
  config::Config effective = config;
  Start start{.config = effective, .orders = orders, .options = {}};
  start.options.started = started_;
  if (auto done = make_seed(start); !done) return done;
  start.fleet.is_successor = succession_.has_inheritance();
  start.fleet.adopts_by_order = orders.adopt_from.has_value();
  // Those that the start makes are empty, and have missed nothing.
  if (!start.fleet.is_successor && !orders.clear_disks) {
    start.fleet.disks = disks_that_exist(config);
  }
  // It is for the first start, and not for each upgrade.
  const bool clears = orders.clear_disks && !succession_.has_inheritance();
  auto disks = open_disks(config, start.options.identity_seed, clears, succession_.take_disks());
  if (!disks) return std::unexpected(disks.error());
  start.options.disks = std::move(*disks);
  take_found_segments(effective);
  const auto steps = {&Server::make_logs, &Server::make_admin, &Server::make_proxy};
  for (const auto step : steps) {
    if (auto done = (this->*step)(start); !done) return done;
  }
  std::string few = limit_connections(proxy_->shared(), config.limits.connections);
  if (!few.empty()) watch_.set_few_descriptors(std::move(few));
  succession_.begin();
  if (succession_.has_inheritance()) {
    if (auto done = succession_.await_commit(); !done) return done;
  } else {
    load_state(state_, *proxy_);
    if (auto done = purge_at_start(*proxy_); !done) return done;
  }
  auto fleet = FleetPurges::create(
      start.config,
      {.loop = *loop_,
       .proxy = *proxy_,
       .memory = memory_,
       .purge =
           [this](PurgeOrder order, std::function<void(const PurgeResult&)> done) {
             const bool is_over = jobs_ == nullptr || workers_ended_ == proxy_->workers().size();
             return !is_over && succession_.purge(std::move(order), std::move(done));
           }},
      start.fleet);
  if (!fleet) return std::unexpected(fleet.error());
  fleet_ = std::move(*fleet);
  // Purges of the time away come before what was stored is served.
  if (fleet_ != nullptr) fleet_->catch_up();
  if (start.fleet.is_successor) return {};
  return orders.adopt_from ? adopt_from(*orders.adopt_from, config, memory_) : Result<void>();
}

Result<void> Server::make_seed(Start& start) {
  const std::optional<filter::Seed>& configured = *start.config.admission.seed;
  auto random = random_seed();
  if (!random) return std::unexpected(random.error());
  // Six hex digits: enough to tell the proxies of one chain apart.
  start.options.instance = succession_.choose_instance(filter::to_hex(*random).substr(0, 6));
  auto fresh = random_seed();
  if (!fresh) return std::unexpected(fresh.error());
  filter::Seed& seed = start.options.identity_seed;
  seed = *fresh;
  const std::optional<filter::Seed> inherited = succession_.seed();
  if (inherited) {
    seed = *inherited;
  } else if (!start.orders.clear_disks) {
    const auto found = seed_of_disks(start.config);
    if (!found) return std::unexpected(found.error());
    if (*found) seed = **found;
  }
  if (configured) seed = *configured;
  if (start.config.state.directory.empty()) return {};
  auto directory = StateDirectory::open(start.config.state.directory,
                                        succession_.take_state_lock(start.config.state.directory));
  if (!directory) return std::unexpected(directory.error());
  state_ = std::move(*directory);
  auto kept = state_->load_seed();
  if (!configured) {
    if (!kept) return std::unexpected(kept.error());
    if (*kept && !inherited) seed = **kept;
  }
  // A seed that is there already need not be written: the disk may be full.
  const bool known = kept && *kept && **kept == seed;
  return known ? Result<void>() : state_->save_seed(seed);
}

Result<void> Server::make_logs(Start& start) {
  const config::Log& wanted = start.config.log;
  if (!wanted.access.empty()) {
    auto log = LogWriter::open(wanted.access);
    if (!log) return std::unexpected(log.error());
    start.options.access_log = std::move(*log);
  }
  if (!wanted.decisions.empty()) {
    ::unlink(wanted.decisions.c_str());  // a journal has one head
    auto log = LogWriter::open(wanted.decisions);
    if (!log) return std::unexpected(log.error());
    journal_log_ = std::move(*log);
    journal_ = std::make_unique<cache::JournalRecorder>(cache::journal_head(
        kernel_options(start.config, start.options.identity_seed, start.options.disks.get()),
        start.options.started));
    start.options.observer = journal_.get();
  }
  return {};
}

Result<void> Server::make_proxy(Start& start) {
  const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
  start.options.workers = config::effective_workers(start.config.workers, cores);
  start.options.inherited = succession_.take_listeners(start.config);
  start.options.tickets = succession_.take_tickets();
  auto proxy = Proxy::create(start.config, std::move(start.options));
  if (!proxy) return std::unexpected(proxy.error());
  proxy_ = std::move(*proxy);
  followers_ = std::make_unique<RequestFollowers>(proxy_->shared().tap);
  proxy_->shared().purge = [this](PurgeOrder order, std::function<void(const PurgeResult&)> done) {
    loop_->post([this, order = std::move(order), done = std::move(done)]() mutable {
      if (!purge(std::move(order), done)) done({.refusal = "busy"});
    });
  };
  return {};
}

// Every client may need a descriptor for its connection and one for that to its origin. More
// clients than that would leave none of them served.
Result<void> Server::make_admin(Start& start) {
  if (auto read = memory_.read_token(start.config); !read) return read;
  AdminOptions options;
  options.body_bytes_max_for = [this, usual = options.body_bytes_max](const auto& head) {
    return admin_body_max(*this, head, usual);
  };
  options.on_end = [this] {
    if (jobs_ != nullptr) end_if_done();
  };
  options.on_cut = [] { log::warn("a transfer of the admin listener was too slow and was cut"); };
  auto opened = admin_.open(
      *loop_, start.config.admin, options,
      [this](AdminRequest&& request, AdminReply to) {
        answer_admin(*this, std::move(request), std::move(to));
      },
      succession_.take_admin_sockets());
  start.options.own = admin_.addresses();
  return opened;
}

Server::End Server::run() {
  timer_ = std::make_unique<net::Timer>(*loop_, [this] { tick(); });
  timer_->start_periodic(std::chrono::milliseconds(250));
  saved_ = monotonic_now();
  jobs_ = std::make_unique<Jobs>(*loop_, [this] { end_if_done(); });
  drain_ = std::make_unique<net::Timer>(*loop_, [this] { end_if_done(); });
  succession_.start();
  for (auto& worker : proxy_->workers()) {
    worker->start([this] { loop_->post([this] { worker_ended(); }); });
  }
  succession_.take_over();
  // All threads are started: the signals stay with this one.
  signals_ = std::make_unique<net::Signals>(
      *loop_, std::initializer_list<int>{SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2},
      [this](int signal) { on_signal(signal); });
  ready_ = true;
  watch_.set_ready(true);
  for (std::size_t i = 0; i < proxy_->listening().size(); ++i) {
    const config::EndpointText& address = config().listen[i].address;
    log::info("listening on {} ({})",
              address->socket.empty() ? proxy_->listening()[i].to_string() : address.text(),
              config().listen[i].mode == config::Mode::kForward ? "forward" : "reverse");
  }
  for (const std::string& name : admin_.names()) log::info("admin on {}", name);
  for (const std::string& warning : watch_.warnings()) log::warn("{}", warning);
  if (!watch_.few_descriptors().empty()) log::info("{}", watch_.few_descriptors());
  const config::Limits& limits = config().limits;
  const std::uint32_t allowed = proxy_->shared().connections_allowed(limits);
  log::info(
      "{} client connections are allowed, {} of one client, with {} of its requests in progress",
      allowed, client_limit(*limits.connections_per_client, allowed),
      client_limit(*limits.transfers_per_client, allowed));
  watch_disks(*proxy_,
              disk_watch_);  // an end before the first tick would leave out that a disk was emptied
  log::info("ready: {} workers, seed fingerprint {}", proxy_->workers().size(),
            filter::fingerprint(proxy_->shared().identity_seed));
  if (fleet_ != nullptr) fleet_->serve();
  succession_.tell_manager_ready();
  loop_->run();
  if (end_ == End::kCutShort) return end_;
  succession_.finish();
  const std::size_t cut = admin_.under_way();
  if (cut != 0) log::warn("the drain is over: {} requests of the admin listener were cut", cut);
  write_journal(journal_.get(), journal_log_.get());
  log::info("ended");
  return end_;
}

void Server::on_signal(int signal) {
  switch (signal) {
    case SIGHUP:
      reload([](const Result<void>&) {});
      return;
    case SIGUSR2:
      upgrade([](const Result<pid_t>&) {});
      return;
    case SIGUSR1:
      if (proxy_->shared().access_log != nullptr) proxy_->shared().access_log->reopen();
      return;
    default:
      break;
  }
  // Handles SIGTERM or SIGINT. The sender of a second one does not want to wait: neither for
  // clients, nor for a disk or a log.
  if (is_ending_) {
    log::warn("{} while draining: exits immediately", signal == SIGINT ? "SIGINT" : "SIGTERM");
    end_ = End::kCutShort;
    loop_->stop();
    return;
  }
  drain();
}

// The loop goes on: monitors learn that this is a drain, not a crash.
void Server::drain() {
  if (is_ending_) return;
  is_ending_ = true;
  ready_ = false;
  watch_.set_ready(false);
  log::info("draining");
  succession_.end();
  drain_->start(config().timeouts.drain);
  proxy_->drain();
  followers_->end();
}

// The loop ends when the workers have, what they left is saved, and nobody is in the midst of a
// page or a memory, or has been for too long.
void Server::end_if_done() {
  if (workers_ended_ < proxy_->workers().size() || jobs_->count() != 0) return;
  // A service manager ends them with this process.
  const bool has_others = is_ending_ && succession_.predecessors_count() != 0;
  if ((admin_.under_way() != 0 || has_others) && drain_->is_running()) return;
  // In the next turn: in this one a page may still be on its way out.
  loop_->post([this] { loop_->stop(); });
}

// With the last of them nothing is learnt any more: what is saved now is all.
void Server::worker_ended() {
  ENCORE_CHECK(workers_ended_ < proxy_->workers().size(), "a worker ends once");
  if (++workers_ended_ < proxy_->workers().size()) return;
  for (auto& worker : proxy_->workers()) worker->join();
  if (disk::Disks* const disks = proxy_->shared().disks.get()) {
    // Waiting records are written; a disk that has died holds nobody up.
    jobs_->submit([disks] { disks->stop(kDiskPatience); }, [] {});
  }
  // Keys on probation are not in the filter yet, and their objects are lost at the stop.
  proxy_->shared().kernel->end_all_waits(monotonic_now());
  // Another process has learnt more since, and saves it.
  if (!succession_.has_handed_over()) save_state(state_, *proxy_, *jobs_, [] {});
  end_if_done();
}

void Server::reload(std::move_only_function<void(const Result<void>&)> done) {
  if (succession_.is_under_way()) {
    log::warn("reload refused: an upgrade is in progress");
    return done(fail(": an upgrade is in progress"));
  }
  if (!ready_) {
    log::warn("reload refused: this process is exiting");
    return done(fail(": this process is exiting"));
  }
  const std::uint64_t number = ++reload_attempts_;
  if (const auto tried = try_reload(); !tried) {
    ++reload_failures_;
    watch_.note_reload("refused" + tried.error().message);
    log::error("reload refused, nothing has changed{}", tried.error().message);
    return done(tried);
  }
  spdlog::set_level(level_of(config().log.level));
  auto owed = std::make_shared<std::move_only_function<void(const Result<void>&)>>(std::move(done));
  const auto told = [this, number, owed] {
    ++reloads_;
    // One that was refused meanwhile is the last.
    if (number == reload_attempts_) watch_.note_reload("");
    log::info("reloaded");
    (*owed)({});
  };
  // Each worker takes it over between two of its turns.
  auto left = std::make_shared<std::size_t>(proxy_->workers().size());
  for (const auto& worker : proxy_->workers()) {
    worker->post([this, left, told] {
      loop_->post([left, told] {
        if (--*left == 0) told();
      });
    });
  }
}

// All or nothing: whatever fails, the running configuration stays as it is.
Result<void> Server::try_reload() {
  auto wanted = load_();
  if (!wanted) return fail(":\n" + wanted.error().message);
  keep_segments(config(), *wanted);
  const auto blockers = config::reload_blockers(config(), *wanted);
  if (!blockers.empty()) return fail(": " + config::blockers_text(blockers));
  const std::optional<Token> before =
      memory_.token() == nullptr ? std::nullopt : std::optional(*memory_.token());
  if (auto read = memory_.read_token(*wanted); !read) return fail(": " + read.error().message);
  if (auto done = proxy_->reload(*wanted); !done) {
    memory_.set_token(before);
    return fail(": " + done.error().message);
  }
  if (fleet_ != nullptr) fleet_->use(*wanted);
  return {};
}

// Work that no request waits for, in small steps.
void Server::tick() {
  proxy_->tick();
  watch_disks(*proxy_, disk_watch_);
  write_journal(journal_.get(), journal_log_.get());
  const MonotonicTime now = loop_->now();
  watch_.look(now);
  followers_->look(now);
  const Nanoseconds interval = config().state.save_interval;
  // An hour that is over is published as it is for ever: it is saved as it is, too.
  publish::ChangedKeys* const changed = proxy_->shared().changed.get();
  if (changed != nullptr && changed->advance(wall_now())) hour_over_ = true;
  const bool due = hour_over_ || (interval.count() != 0 && now - saved_ >= interval);
  if (ready_ && !saving_ && due) {
    hour_over_ = false;
    saved_ = now;
    saving_ = true;
    save_state(state_, *proxy_, *jobs_, [this] { saving_ = false; });
  }
}

ProcessStatus Server::status() const {
  return {.uptime = monotonic_now() - started_,
          .workers = proxy_->workers().size(),
          .reloads = reloads_,
          .reload_failures = reload_failures_,
          .upgrade_failures = succession_.failures(),
          .predecessors = succession_.reports(),
          .fleet = fleet_ == nullptr ? std::nullopt : std::optional(fleet_->report())};
}

bool Server::purge(PurgeOrder order, std::move_only_function<void(const PurgeResult&)> done) {
  if (!takes_jobs(jobs_, *proxy_, workers_ended_)) return false;
  if (fleet_ == nullptr || order.dry_run) {
    return succession_.purge(std::move(order), std::move(done));
  }
  using Done = std::move_only_function<void(const PurgeResult&)>;
  auto owed = std::make_shared<Done>(std::move(done));
  PurgeOrder published = order;
  return succession_.purge(
      std::move(order), [this, published = std::move(published), owed](const PurgeResult& purged) {
        if (!purged.refusal.empty()) return (*owed)(purged);
        fleet_->publish(published, purged, [owed](const PurgeResult& whole) { (*owed)(whole); });
      });
}

void Server::upgrade(Upgrade::Done done) {
  if (!ready_) return done(fail("this process is exiting"));
  succession_.upgrade(std::move(done));
}

}  // namespace encore::server

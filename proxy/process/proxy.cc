#include "proxy/process/proxy.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/check.h"
#include "config/derive.h"
#include "config/network.h"
#include "proxy/intake/challenge_files.h"
#include "proxy/observe/log.h"
#include "proxy/process/series_reports.h"
#include "proxy/process/store_link.h"

namespace encore::server {
namespace {

// For the hours as a config has them.
Result<publish::HourlyFilters::Options> hourly_options(const config::Config& config) {
  const auto parameters = config::derive_changed_filter(config.filters);
  if (!parameters) return std::unexpected(parameters.error());
  return publish::HourlyFilters::Options{.keep = config::hours_kept(config.filters),
                                         .filter = *parameters};
}

// Memory that large responses have left and that the next ones take: to give it back and have it
// again costs as much as copying it. It counts as held, and never keeps anything from being stored.
constexpr std::uint64_t kIdleBytesMax = 10ULL << 20U;

// Lines of a generation whose bits a sample reads, once a second whether anybody looks or not: a
// thirty-second of what an answer reads.
constexpr std::uint64_t kSampledLines = 128;

// Clients shown of those who reject us.
constexpr std::size_t kRejectedShown = 100;

std::optional<InterceptReport> intercept_report(const Runtime& runtime) {
  if (runtime.interception == nullptr) return std::nullopt;
  const Interception& interception = *runtime.interception;
  const ca::Authority& authority = interception.authority();
  const auto seconds = [](auto duration) {
    return std::chrono::floor<std::chrono::seconds>(duration).count();
  };
  const MonotonicTime now = monotonic_now();
  InterceptReport report{.authority = authority.fingerprint(),
                         .hosts = runtime.config.intercept.hosts,
                         .authority_ends = seconds(authority.not_after().time_since_epoch()),
                         .certificates_made = interception.mint().made(),
                         .certificates_kept = interception.mint().kept(),
                         .rejected = interception.rejected().paused(now),
                         .newest = {}};
  for (const auto& pair : interception.rejected().newest(kRejectedShown, now)) {
    report.newest.push_back(
        {.client = pair.client,
         .host = pair.host,
         .refusals = pair.refusals,
         .seconds_left = std::chrono::ceil<std::chrono::seconds>(pair.left).count()});
  }
  return report;
}

}  // namespace

// The store may hold this much more than the cache's memory: a twentieth for what its slabs do not
// fill, and room for transfers in flight.
std::uint64_t store_limit(const config::Config& config) {
  const std::uint64_t memory = config.cache.memory_bytes;
  return memory + memory / 20 + memory / 4 + config.limits.transfer_memory_bytes;
}

cache::KernelOptions kernel_options(const config::Config& config, const filter::Seed& identity_seed,
                                    const disk::Disks* disks) {
  auto options = config::kernel_options(config);
  ENCORE_CHECK(options.has_value(), "a loaded config has a filter that can be made");
  options->identity_seed = identity_seed;
  if (!*config.admission.seed) options->admission.filter.seed = identity_seed;
  if (disks != nullptr) options->disks = disks->kernel_disks();
  return *options;
}

Proxy::Proxy(const config::Config& config, const Options& options)
    : config_(config), instance_(options.instance), own_(options.own) {
  shared_.identity_seed = options.identity_seed;
}

Proxy::~Proxy() {
  // Before the loops that receive its results.
  shared_.passwords.stop();
  // Before the loops that its reads are handed to.
  if (shared_.disks != nullptr) (void)shared_.disks->stop(Nanoseconds::zero());
  for (auto& worker : workers_) worker->end_all();
  workers_.clear();
  shared_.disks.reset();
  if (shared_.store != nullptr) shared_.store->set_relocator(nullptr);
  shared_.kernel.reset();
}

Result<std::unique_ptr<Proxy>> Proxy::create(const config::Config& config, Options options) {
  ENCORE_CHECK(options.workers != 0, "a proxy has a worker");
  std::unique_ptr<Proxy> proxy(new Proxy(config, options));
  if (auto made = proxy->make_published(); !made) return std::unexpected(made.error());
  if (auto made = proxy->make_cache(options); !made) return std::unexpected(made.error());
  proxy->shared_.access_log = std::move(options.access_log);
  auto shadows = proxy->prepare_shadows(config);
  if (!shadows) return std::unexpected(shadows.error());
  proxy->shared_.shadows.adopt(std::move(*shadows), monotonic_now());
  if (auto made = proxy->make_workers(options); !made) {
    return std::unexpected(made.error());
  }
  if (auto bound = proxy->listen(std::move(options.inherited)); !bound)
    return std::unexpected(bound.error());
  return proxy;
}

Result<void> Proxy::make_cache(Options& options) {
  const std::uint64_t limit = store_limit(config_);
  auto store = store::make_memory_store(
      {.limit_bytes = limit, .idle_bytes_max = std::min(limit / 4, kIdleBytesMax)});
  if (!store) return std::unexpected(store.error());
  shared_.store = std::move(*store);
  store_link_ =
      std::make_unique<StoreLink>(*shared_.store, shared_.identity_seed, shared_.resident.get());
  shared_.disks = std::move(options.disks);
  auto kernel = cache::Kernel::create(
      kernel_options(config_, shared_.identity_seed, shared_.disks.get()),
      {.owner = store_link_.get(), .observer = options.observer}, options.started);
  if (!kernel) return std::unexpected(kernel.error());
  shared_.kernel = std::move(*kernel);
  store_link_->connect(shared_.kernel.get());
  shared_.store->set_relocator(store_link_.get());
  if (shared_.disks != nullptr) shared_.disks->start(*shared_.kernel);
  return {};
}

Result<void> Proxy::make_published() {
  if (config_.filters.publish.empty()) return {};
  if (config::publishes(config_.filters, config::kPublishChanged)) {
    const auto options = hourly_options(config_);
    if (!options) return std::unexpected(options.error());
    auto hours = publish::HourlyFilters::create(*options, wall_now());
    if (!hours) return std::unexpected(hours.error());
    shared_.changed = std::make_unique<publish::ChangedKeys>(std::move(*hours));
  }
  if (config::publishes(config_.filters, config::kPublishResident)) {
    const auto parameters = config::derive_resident_filter(config_);
    if (!parameters) return std::unexpected(parameters.error());
    auto resident = publish::ResidentKeys::create(*parameters);
    if (!resident) return std::unexpected(resident.error());
    shared_.resident = std::move(*resident);
  }
  shared_.published = std::make_unique<publish::Resources>(publish::Resources::Sources{
      .changed = shared_.changed.get(), .resident = shared_.resident.get()});
  return {};
}

Result<void> Proxy::restore_changed(std::string_view bytes) {
  ENCORE_CHECK(shared_.changed != nullptr, "what is restored is published");
  const auto options = hourly_options(config_);
  if (!options) return std::unexpected(options.error());
  auto hours = publish::HourlyFilters::restore(bytes, *options, wall_now());
  if (!hours) return std::unexpected(hours.error());
  shared_.changed->replace(std::move(*hours));
  return {};
}

Result<void> Proxy::make_workers(const Options& options) {
  const std::uint32_t count = options.workers;
  auto first_runtime = Runtime::create(config_, {}, instance_, nullptr, count, options.tickets);
  if (!first_runtime) return std::unexpected(first_runtime.error());
  keep_runtime(*first_runtime);
  for (std::uint32_t i = 0; i < count; ++i) {
    shared_.stats.push_back(std::make_unique<WorkerStats>());
    shared_.stats.back()->number = i;
    auto worker = Worker::create(shared_, *shared_.stats.back(), *first_runtime);
    if (!worker) return std::unexpected(worker.error());
    shared_.workers.push_back(worker->get());
    workers_.push_back(std::move(*worker));
  }
  return {};
}

Result<std::shared_ptr<const Runtime>> Proxy::make_runtime(const config::Config& config,
                                                           const Listeners::Plan& plan) const {
  std::vector<net::Address> own = own_;
  for (const net::Address& address : Listeners::addresses(plan)) own.push_back(address);
  return Runtime::create(config, own, instance_, present_runtime().get(), workers_.size(), {},
                         present_tls().get());
}

void Proxy::adopt(Listeners::Plan plan, const std::shared_ptr<const Runtime>& runtime) {
  auto seats = listeners_->adopt(std::move(plan), runtime->tls, runtime->listeners);
  std::set<std::string> warnings;  // several listeners may have the same file
  for (const auto& policy : runtime->policies) {
    if (policy == nullptr || policy->credentials == nullptr) continue;
    warnings.insert(policy->credentials->warnings().begin(), policy->credentials->warnings().end());
  }
  const std::string& challenges = runtime->config.acme.challenge_directory;
  if (auto usable = check_challenge_directory(challenges); !usable) {
    warnings.insert(usable.error().message);
  }
  for (const std::string& warning : warnings) log::warn("{}", warning);
  certificates_.begin(*runtime, monotonic_now());
  listening_.clear();
  for (const Listeners::Entry& entry : listeners_->present()) listening_.push_back(entry.bound);
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    workers_[i]->set_runtime(runtime, std::move(seats[i]));
  }
}

Result<void> Proxy::listen(std::vector<Listeners::Inherited> inherited) {
  listeners_ = std::make_unique<Listeners>(workers_.size());
  listeners_->inherit(std::move(inherited));
  auto plan = listeners_->plan(config_);
  if (!plan) return std::unexpected(plan.error());
  // Only now it is known which addresses are ours.
  auto runtime = make_runtime(config_, *plan);
  if (!runtime) return std::unexpected(runtime.error());
  keep_runtime(*runtime);
  adopt(std::move(*plan), *runtime);
  return {};
}

Result<ShadowCaches::Prepared> Proxy::prepare_shadows(const config::Config& config) const {
  ShadowCaches::Wanted wanted{.policies = {}, .sample = config.shadow.sample};
  for (const config::ShadowPolicyText& policy : config.shadow.policies) {
    auto whole = config::shadow_kernel(config, *policy);
    if (!whole) return std::unexpected(whole.error());
    whole->identity_seed = shared_.identity_seed;
    if (!*config.admission.seed) whole->admission.filter.seed = shared_.identity_seed;
    wanted.policies.push_back({.name = policy.text(), .whole = std::move(*whole)});
  }
  return shared_.shadows.prepare(wanted, monotonic_now());
}

Result<void> Proxy::reload(const config::Config& config) {
  const std::uint64_t limit = store_limit(config);
  if (limit > shared_.store->limit_bytes_max()) {
    return fail("`encore upgrade` is needed for a cache.memory this large; no request fails");
  }
  auto plan = listeners_->plan(config);
  if (!plan) return std::unexpected(plan.error());
  auto runtime = make_runtime(config, *plan);
  if (!runtime) return std::unexpected(runtime.error());
  auto shadows = prepare_shadows(config);
  if (!shadows) return std::unexpected(shadows.error());
  const auto options = cache::reload_options(kernel_options(config, shared_.identity_seed));
  auto done = shared_.kernel->reconfigure(options, monotonic_now());
  if (!done) return std::unexpected(done.error());
  // A lower limit follows when the kernel has evicted down to it.
  if (limit > shared_.store->stats().limit_bytes) shared_.store->set_limit(limit);
  config_ = config;
  derived_options_.reset();
  keep_runtime(*runtime);
  // Before the workers are woken to check what is wanted.
  shared_.shadows.adopt(std::move(*shadows), monotonic_now());
  adopt(std::move(*plan), *runtime);
  return {};
}

void Proxy::tick() {
  reclaim();
  check_certificates();
  (void)shared_.store->maintain(256);
  shared_.kernel->release_adopted();
  (void)shared_.kernel->end_waits(monotonic_now());
  tune_probation();
}

// New connections get the certificates of files that have changed.
void Proxy::check_certificates() {
  const auto present = present_tls();
  auto next = certificates_.tick(*present_runtime(), *present, monotonic_now());
  if (next == nullptr) return;
  for (auto& worker : workers_) worker->set_tls(next);
  const MutexLock lock(runtime_mutex_);
  tls_ = std::move(next);
}

// Takes samples where it is known how many objects the disks will hold, others where that was wrong
// by a factor of two, and follows what they say.
void Proxy::tune_probation() {
  const MonotonicTime now = monotonic_now();
  if (config_.admission.policy != config::Policy::kProbation || shared_.disks == nullptr) {
    if (tuning_) (void)shared_.shadows.tune({}, now);
    tuning_.reset();
    return;
  }
  const cache::KernelStatistics statistics = shared_.kernel->statistics();
  // Theory of filters derives them, with some 80 million instructions: too many for each second.
  if (!derived_options_) derived_options_ = kernel_options(config_, shared_.identity_seed);
  const cache::KernelOptions& options = *derived_options_;
  const cache::ProbationTuning base{
      .whole = {.fill = options.admission.fill, .wait_max = options.admission.wait_max},
      .write_cost = config_.admission.write_cost};
  if (auto next = cache::next_tuning(statistics, options, base, tuning_ ? &*tuning_ : nullptr)) {
    tuning_ = *next;
    if (auto done = shared_.shadows.tune(tuning_, now); !done) {
      log::warn("probation is not tuned: {}", done.error().message);
    }
  }
  const auto rule = shared_.shadows.rule();
  if (rule && *rule != statistics.rule) (void)shared_.kernel->follow(*rule, now);
}

// After a reload to less memory: evicts for a share of the tick's time, a few under each lock.
void Proxy::reclaim() {
  constexpr std::uint32_t kVictims = 64;
  constexpr std::chrono::milliseconds kShare(25);
  const MonotonicTime now = monotonic_now();
  using Reclaimed = cache::Kernel::Reclaimed;
  Reclaimed done = shared_.kernel->reclaim(kVictims, now);
  while (done == Reclaimed::kSome && monotonic_now() - now < kShare) {
    done = shared_.kernel->reclaim(kVictims, now);
  }
  const std::uint64_t limit = store_limit(config_);
  if (done == Reclaimed::kAll && limit < shared_.store->stats().limit_bytes) {
    shared_.store->set_limit(limit);
  }
}

std::size_t Proxy::clear_rejections(const Rejections::Which& which) {
  const auto runtime = present_runtime();
  return runtime->interception == nullptr ? 0 : runtime->interception->rejected().clear(which);
}

void Proxy::drain() {
  shared_.draining.store(true, std::memory_order_relaxed);
  for (auto& worker : workers_) worker->drain({.limit = config_.timeouts.drain});
}

void Proxy::hand_over() {
  shared_.draining.store(true, std::memory_order_relaxed);
  listeners_->leave_files();
  const config::Upgrade& times = config_.upgrade;
  for (auto& worker : workers_) {
    worker->drain({.limit = times.drain,
                   .gentle = DrainPlan::Gentle{.idle = times.idle, .tunnels = times.tunnels}});
  }
}

void Proxy::duplicate_sockets(net::Loop& loop,
                              std::function<void(std::vector<Listeners::Inherited>)> taken) {
  struct Collected {
    std::size_t left = 0;
    std::vector<Worker::Duplicates> all;
  };
  auto collected = std::make_shared<Collected>(Collected{.left = workers_.size(), .all = {}});
  const auto add = [this, collected, taken = std::move(taken)](Worker::Duplicates duplicates) {
    collected->all.push_back(std::move(duplicates));
    if (--collected->left != 0) return;
    std::vector<Listeners::Inherited> listeners;
    for (const Listeners::Entry& entry : listeners_->present()) {
      Listeners::Inherited& listener = listeners.emplace_back();
      listener.where = entry.where.text();
      listener.bound = entry.bound;
      for (Worker::Duplicates& of_worker : collected->all) {
        for (auto& each : of_worker) {
          if (each.id == entry.id && each.socket) {
            listener.sockets.push_back(std::move(each.socket));
          }
        }
      }
    }
    taken(std::move(listeners));
  };
  for (auto& worker : workers_) {
    worker->duplicate_sockets([&loop, add](Worker::Duplicates duplicates) {
      auto shared = std::make_shared<Worker::Duplicates>(std::move(duplicates));
      loop.post([add, shared] { add(std::move(*shared)); });
    });
  }
}

void Proxy::complete_listeners() {
  auto added = listeners_->complete();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (!added[i].empty()) workers_[i]->add_sockets(std::move(added[i]));
  }
}

void Proxy::keep_runtime(std::shared_ptr<const Runtime> runtime) {
  const MutexLock lock(runtime_mutex_);
  tls_ = std::shared_ptr<const TlsListeners>(runtime, &runtime->tls);
  runtime_ = std::move(runtime);
}

std::shared_ptr<const TlsListeners> Proxy::present_tls() const {
  const MutexLock lock(runtime_mutex_);
  return tls_;
}

std::shared_ptr<const Runtime> Proxy::present_runtime() const {
  const MutexLock lock(runtime_mutex_);
  return runtime_;
}

Snapshot Proxy::snapshot() const {
  Snapshot sum = count();
  sum.admission = shared_.kernel->admission_statistics();
  const auto runtime = present_runtime();
  sum.servers = server_reports(*runtime);
  sum.series = series_report(*runtime, shared_);
  sum.intercept = intercept_report(*runtime);
  sum.certificates = known_certificates(runtime->config, *present_tls(), wall_now());
  shared_.carried.add_to(sum);
  return sum;
}

Snapshot Proxy::sample() const {
  Snapshot sum = count();
  shared_.carried.add_to(sum);
  return sum;
}

Snapshot Proxy::count() const {
  Snapshot sum;
  for (const auto& stats : shared_.stats) sum.add(*stats);
  sum.kernel = shared_.kernel->statistics();
  sum.admission = shared_.kernel->admission_statistics(kSampledLines);
  sum.on_probation = config_.admission.policy == config::Policy::kProbation;
  if (shared_.disks != nullptr) sum.devices = shared_.disks->statistics().disks;
  sum.store = shared_.store->stats();
  sum.shadows = shared_.shadows.report(monotonic_now());
  sum.transfer_memory_bytes = shared_.transfer_memory.bytes();
  const AgeHistogram& ages = store_link_->evicted_ages();
  for (std::size_t i = 0; i < kAgeBuckets; ++i) {
    sum.evicted_ages.buckets[i] = ages.bucket(i);
    sum.evicted_ages.count += sum.evicted_ages.buckets[i];
  }
  sum.evicted_ages.sum = ages.sum_seconds();
  return sum;
}

Result<Explanation> Proxy::explain(const Explained& request) const {
  return server::explain({.runtime = present_runtime(),
                          .identity_seed = shared_.identity_seed,
                          .kernel = *shared_.kernel,
                          .inflight = shared_.inflight,
                          .recent = shared_.recent,
                          .now = monotonic_now(),
                          .wall = wall_now()},
                         request);
}

}  // namespace encore::server

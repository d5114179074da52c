#include "proxy/disk/disks.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <random>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "cache/disk_layout.h"
#include "proxy/disk/checksum.h"
#include "proxy/disk/disk_set.h"
#include "proxy/disk/file.h"
#include "proxy/disk/open.h"

namespace encore::disk {
namespace {

// Share of the disks that may be re-inserted for readers.
constexpr std::uint64_t kWantedShare = 4;

std::uint64_t random_word() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

Uuid random_uuid() { return {random_word(), random_word()}; }

bool has_prefix(const Purge& rule, const RecordFront& front) {
  return rule.kind == PurgeKind::kPrefix && front.text.key.starts_with(rule.pattern);
}

// The first number of the bodies that are made in this run: nowhere near those of another run. This
// holds even if the clock stands still: versions are above all that are found of earlier runs.
std::uint64_t first_body(const filter::Seed& seed, WallTime now, cache::DiskVersion newest) {
  const std::array<std::uint64_t, 2> words = {seed.lo, seed.hi};
  const auto time = static_cast<std::uint64_t>(now.time_since_epoch().count());
  return checksum(newest, time, std::as_bytes(std::span(words)));
}

Result<void> check_paths(const std::vector<DiskSetup>& disks) {
  std::set<std::filesystem::path> seen;
  for (const DiskSetup& disk : disks) {
    std::error_code error;
    auto path = std::filesystem::weakly_canonical(disk.path, error);
    if (error) path = disk.path;
    if (!seen.insert(path).second) {
      return fail("disk " + disk.path + " is named twice; each needs a file of its own");
    }
  }
  return {};
}

// Calls `done` when all disks have answered, with the first error.
class PurgeAnswer {
 public:
  PurgeAnswer(std::size_t disks, std::move_only_function<void(Result<void>)> done)
      : left_(disks), done_(std::move(done)) {}

  void add(Result<void> result) ENCORE_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (!result && result_) result_ = std::move(result);
      if (--left_ != 0) return;
    }
    done_(std::move(result_));
  }

 private:
  Mutex mutex_;
  std::size_t left_;
  Result<void> result_;
  std::move_only_function<void(Result<void>)> done_;
};

Result<std::unique_ptr<File>> open_to_make(const std::string& path) {
  return open_file(path, FileUse::kMake);
}

Result<std::shared_ptr<DiskService>> open_service(const DisksOptions& options, std::size_t number,
                                                  DiskSet::Member& member,
                                                  const std::shared_ptr<DiskCommon>& common) {
  EngineOptions engine = options.engine;
  // A test's engine says itself when what is done.
  if (options.is_inline || options.make_engine) engine.write_batch_bytes = 0;
  const DiskSetup& disk = options.disks[number];
  return DiskService::open(
      std::move(member.file),
      {.disk_bytes = disk.bytes,
       .segment_bytes = disk.segment_bytes,
       .identity_seed = options.identity_seed,
       .uuid = random_uuid(),
       .now = common->clocks.wall_seconds(),
       .clear = options.clear || !member.emptied_for.empty()},
      {.number = static_cast<std::uint16_t>(number),
       .bytes = disk.bytes,
       .engine = engine,
       .matches_rule = options.matches_rule ? options.matches_rule : MatchesRule(has_prefix),
       .position_min =
           options.clear || !member.emptied_for.empty() ? std::nullopt : member.position_min,
       .emptied_for = options.clear ? "" : member.emptied_for},
      common);
}

// All disks are open: from now on one that is absent misses what is purged (docs/decisions/0390).
void begin_run(const DisksOptions& options, RunHistory runs,
               const std::vector<std::shared_ptr<DiskService>>& services, DiskWitness& witness) {
  runs.begin(random_word() | 1U);
  // Clearing the cache counts as a purge of what an absent disk has.
  if (options.clear) runs.note_purge();
  std::vector<DiskWitness::Disk> disks;
  for (const auto& service : services) {
    service->begin_run(runs);
    disks.push_back(service->witnessed());
  }
  witness.begin(runs, disks);
}

}  // namespace

Result<std::unique_ptr<Disks>> Disks::open(const DisksOptions& options) {
  if (auto checked = check_paths(options.disks); !checked) {
    return std::unexpected(checked.error());
  }
  auto common = std::make_shared<DiskCommon>(options.witness);
  common->clocks = options.clocks;
  std::vector<std::string> paths;
  for (const DiskSetup& disk : options.disks) paths.push_back(disk.path);
  auto set = DiskSet::open(paths, options.open_file ? options.open_file : open_to_make);
  if (!set) return std::unexpected(set.error());
  // A disk that is cleared may be damaged, and so may be the witness.
  if (auto looked = set->look(common->witness, options.identity_seed); !looked && !options.clear) {
    set->remove_new_files();
    return std::unexpected(looked.error());
  }
  std::vector<std::shared_ptr<DiskService>> services;
  for (std::size_t i = 0; i < options.disks.size(); ++i) {
    DiskSet::Member& member = set->members()[i];
    auto service = open_service(options, i, member, common);
    if (!service) {
      // Nothing is there yet; but it may have taken all the room that there was.
      set->remove_new_files(i);
      return std::unexpected(service.error());
    }
    services.push_back(std::move(*service));
  }
  begin_run(options, set->runs(), services, common->witness);
  return std::unique_ptr<Disks>(new Disks(options, std::move(common), std::move(services)));
}

Disks::Disks(const DisksOptions& options, std::shared_ptr<DiskCommon> common,
             std::vector<std::shared_ptr<DiskService>> services)
    : options_(options),
      common_(std::move(common)),
      services_(std::move(services)),
      run_(random_word() | 1U) {
  std::uint64_t bytes = 0;
  for (const DiskSetup& disk : options.disks) bytes += disk.bytes;
  common_->wanted.set_most(bytes / kWantedShare);
  // A thread that is stuck in a device may outlive the other disks.
  const std::vector<std::weak_ptr<DiskService>> all(services_.begin(), services_.end());
  common_->bury = [all](const filter::Hash128& key, cache::DiskTombstone tombstone) {
    for (const auto& each : all) {
      if (const auto service = each.lock()) service->bury(key, tombstone);
    }
  };
  common_->version_at = [all](const cache::DiskPlace& place, const filter::Hash128& key) {
    const auto service = place.disk < all.size() ? all[place.disk].lock() : nullptr;
    return service ? service->version_at(place, key) : std::nullopt;
  };
}

Disks::~Disks() { stop(Nanoseconds(0)); }

std::vector<cache::DiskOptions> Disks::kernel_disks() const {
  std::vector<cache::DiskOptions> disks;
  for (const auto& service : services_) disks.push_back(service->kernel_disk());
  return disks;
}

void Disks::start(cache::Kernel& kernel) {
  common_->kernel.open(kernel);
  has_started_ = true;
  const auto make_engine = [&] {
    return options_.make_engine ? options_.make_engine(options_.engine)
           : options_.is_inline ? make_inline_engine()
                                : make_threaded_engine(options_.engine);
  };
  // All of them before anything of one is loaded: versions are the kernel's, over all disks.
  cache::DiskVersion newest = 0;
  for (const auto& service : services_) newest = std::max(newest, service->attach());
  next_body_ = first_body(options_.identity_seed, options_.clocks.wall(), newest);
  for (const auto& service : services_) service->set_engine(make_engine());
  for (const auto& service : services_) service->begin();
  if (!options_.is_inline && !options_.make_engine) {
    ticks_ = std::thread([this] { run_ticks(); });
  }
}

void Disks::run_ticks() {
  constexpr std::chrono::seconds kTick(1);
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
      ended_.wait_for(mutex_, kTick);
      if (stopping_) return;
    }
    tick();
  }
}

void Disks::tick() {
  for (const auto& service : services_) service->tick();
  common_->witness.tick(common_->clocks.monotonic());
}

bool Disks::fit(std::uint64_t record_bytes, std::uint32_t names_bytes) const {
  return std::ranges::all_of(services_, [&](const auto& service) {
    return cache::fits_empty_segment(record_bytes, names_bytes, service->segment_bytes());
  });
}

bool Disks::is_queue_full() const {
  const auto is_full = [](const auto& service) { return service->writes() && service->is_full(); };
  const auto writes = [](const auto& service) { return service->writes(); };
  // One full queue is enough: the kernel decides only later which disk takes an object.
  return std::ranges::any_of(services_, is_full) || std::ranges::none_of(services_, writes);
}

void Disks::decided(const cache::Key& key, const cache::DiskDecision& decision,
                    std::unique_ptr<RecordSource> source) {
  if (decision.outcome == cache::DiskOutcome::kPlaced) {
    services_[decision.place.disk]->put(decision.order, {.key = key.hash,
                                                         .place = decision.place,
                                                         .turn = decision.turn,
                                                         .version = decision.version,
                                                         .source = std::move(source),
                                                         .from = std::nullopt});
  }
  if (decision.tombstone) bury(key.hash, decision.tombstone);
}

std::uint64_t Disks::new_body_number() {
  const std::uint64_t number = next_body_.fetch_add(1, std::memory_order_relaxed);
  // 0 is the number of no body.
  return number != 0 ? number : next_body_.fetch_add(1, std::memory_order_relaxed);
}

void Disks::load(const cache::Key& key, const cache::DiskPlace& place,
                 std::unique_ptr<DiskLoad> load) {
  services_[place.disk]->load(key.hash, place, std::move(load));
}

void Disks::bury(const filter::Hash128& key, cache::DiskTombstone tombstone) {
  if (tombstone) common_->bury(key, tombstone);
}

void Disks::purge(const std::vector<Purge>& purges,
                  std::move_only_function<void(Result<void>)> done) {
  if (services_.empty()) return done({});
  const auto answer = std::make_shared<PurgeAnswer>(services_.size(), std::move(done));
  for (const auto& service : services_) {
    service->purge(purges, [answer](Result<void> result) { answer->add(std::move(result)); });
  }
}

std::size_t Disks::bans() const {
  std::size_t most = 0;
  for (const auto& service : services_) most = std::max(most, service->bans());
  return most;
}

bool Disks::stop(Nanoseconds patience) {
  if (stopped_) return *stopped_;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  ended_.notify_all();
  if (ticks_.joinable()) ticks_.join();
  bool all = true;
  if (has_started_) {
    const auto end = std::chrono::steady_clock::now() + patience;
    // All finish at the same time, within one patience.
    for (const auto& service : services_) service->finish();
    for (const auto& service : services_) {
      const auto left = end - std::chrono::steady_clock::now();
      all &= service->stop(std::max(Nanoseconds(0), Nanoseconds(left)));
    }
  }
  // A thread that is stuck in a device finds no kernel when it comes back.
  common_->kernel.close();
  if (has_started_) common_->witness.finish();
  stopped_ = all;
  return all;
}

DisksStatistics Disks::statistics() const {
  DisksStatistics statistics;
  for (const auto& service : services_) statistics.disks.push_back(service->report());
  statistics.witness_error = common_->witness.error();
  return statistics;
}

namespace {

Result<std::optional<Superblock>> superblock_of_disk(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return std::nullopt;
  const auto file = open_file(path, FileUse::kLook);
  if (!file) return std::unexpected(file.error());
  return find_disk(**file);
}

}  // namespace

Result<std::optional<filter::Seed>> seed_of_disk(const std::string& path) {
  const auto found = superblock_of_disk(path);
  if (!found) return std::unexpected(found.error());
  if (!*found) return std::nullopt;
  return (*found)->identity_seed;
}

Result<std::optional<std::uint64_t>> segment_bytes_of_disk(const std::string& path) {
  const auto found = superblock_of_disk(path);
  if (!found) return std::unexpected(found.error());
  if (!*found) return std::nullopt;
  return (*found)->segment_bytes;
}

}  // namespace encore::disk

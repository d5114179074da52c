#include "proxy/disk/disks.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <filesystem>
#include <iterator>
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

using OpenFile = std::function<Result<std::unique_ptr<File>>(const std::string& path)>;

OpenFile opener_of(const DisksOptions& options) {
  if (options.open_file) return options.open_file;
  if (!options.handed_over) return open_to_make;
  return [files = *options.handed_over](const std::string& path) -> Result<std::unique_ptr<File>> {
    const auto found = files.find(path);
    if (found == files.end()) return fail("disk " + path + " was not handed over");
    return adopt_file(path, found->second);
  };
}

// Waits until each of them has answered. Shared with those that answer late.
class Answers {
 public:
  explicit Answers(std::size_t count) : left_(count) {}
  void add(bool good) ENCORE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    is_good_ = is_good_ && good;
    if (--left_ == 0) changed_.notify_all();
  }
  // False: one was not good, or not in time.
  bool wait(std::chrono::steady_clock::time_point end) ENCORE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (left_ != 0) {
      if (changed_.wait_until(mutex_, end) == std::cv_status::timeout && left_ != 0) return false;
    }
    return is_good_;
  }

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::size_t left_ ENCORE_GUARDED_BY(mutex_);
  bool is_good_ ENCORE_GUARDED_BY(mutex_) = true;
};

// For what a device does in a moment, or never.
constexpr std::chrono::seconds kDevicePatience(10);

Result<std::shared_ptr<DiskService>> open_service(const DisksOptions& options, std::size_t number,
                                                  DiskSet::Member& member,
                                                  const std::shared_ptr<DiskCommon>& common) {
  EngineOptions engine = options.engine;
  // A test's engine says itself when what is done.
  if (options.is_inline || options.make_engine) engine.write_batch_bytes = 0;
  const DiskSetup& disk = options.disks[number];
  // Making it anew would write to it before its time.
  if (options.handed_over && (!member.superblock || !member.emptied_for.empty())) {
    return fail("disk " + disk.path + " cannot be taken over" +
                (member.emptied_for.empty() ? std::string() : ": " + member.emptied_for));
  }
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
       .emptied_for = options.clear ? "" : member.emptied_for,
       .is_held = options.handed_over.has_value()},
      common);
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
  auto set = DiskSet::open(paths, opener_of(options));
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
  common->is_held = options.handed_over.has_value();
  std::unique_ptr<Disks> disks(
      new Disks(options, std::move(common), std::move(services), set->runs()));
  if (!options.handed_over) {
    disks->begin_run();
    for (const auto& service : disks->services_) service->begin_run(disks->runs_);
    disks->begin_witness();
  }
  return disks;
}

// All disks are open: from now on one that is absent misses what is purged (docs/decisions/0390).
void Disks::begin_run() {
  runs_.begin(random_word() | 1U);
  // Clearing the cache counts as a purge of what an absent disk has.
  if (options_.clear) runs_.note_purge();
}

void Disks::begin_witness() {
  std::vector<DiskWitness::Disk> disks;
  for (const auto& service : services_) disks.push_back(service->witnessed());
  common_->witness.begin(runs_, disks);
}

Disks::Disks(const DisksOptions& options, std::shared_ptr<DiskCommon> common,
             std::vector<std::shared_ptr<DiskService>> services, RunHistory runs)
    : options_(options),
      common_(std::move(common)),
      services_(std::move(services)),
      run_(random_word() | 1U),
      runs_(runs) {
  std::uint64_t bytes = 0;
  for (const DiskSetup& disk : options.disks) bytes += disk.bytes;
  common_->wanted.set_most(bytes / kWantedShare);
  // A thread that is stuck in a device may outlive the other disks.
  const std::vector<std::weak_ptr<DiskService>> all(services_.begin(), services_.end());
  common_->add_tombstone = [all](const filter::Hash128& key, cache::DiskTombstone tombstone) {
    for (const auto& each : all) {
      if (const auto service = each.lock()) service->add_tombstone(key, tombstone);
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
  if (common_->is_held) return;
  common_->witness.tick(common_->clocks.monotonic());
}

bool Disks::fit(std::uint64_t record_bytes, std::uint32_t names_bytes) const {
  return std::ranges::all_of(services_, [&](const auto& service) {
    return cache::fits_empty_segment(record_bytes, names_bytes, service->segment_bytes());
  });
}

bool Disks::is_queue_full() const {
  if (common_->is_held) return true;
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
  if (decision.tombstone) add_tombstone(key.hash, decision.tombstone);
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

void Disks::add_tombstone(const filter::Hash128& key, cache::DiskTombstone tombstone) {
  if (tombstone) common_->add_tombstone(key, tombstone);
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
  if (has_started_ && !common_->is_held) common_->witness.finish();
  stopped_ = all;
  return all;
}

bool Disks::is_loaded() const {
  return std::ranges::none_of(services_, [](const auto& each) { return each->is_loading(); });
}

bool Disks::hold(Nanoseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  // The index is read here first: the other process must read it, too.
  constexpr std::chrono::milliseconds kLook(10);
  while (!is_loaded()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kLook);
  }
  common_->is_held = true;
  const auto answers = std::make_shared<Answers>(services_.size());
  for (const auto& service : services_) {
    service->hold([answers](bool good) { answers->add(good); });
  }
  if (answers->wait(end)) return true;
  resume();
  return false;
}

void Disks::resume() {
  const auto answers = std::make_shared<Answers>(services_.size());
  for (const auto& service : services_) {
    service->resume([answers](bool good) { answers->add(good); });
  }
  (void)answers->wait(std::chrono::steady_clock::now() + kDevicePatience);
  common_->witness.finish();  // the other process may have written it
  common_->is_held = false;
}

std::vector<std::pair<std::string, int>> Disks::files() const {
  std::vector<std::pair<std::string, int>> files;
  for (std::size_t i = 0; i < services_.size(); ++i) {
    files.emplace_back(options_.disks[i].path, services_[i]->descriptor());
  }
  return files;
}

std::vector<Purge> Disks::take_tombstones() {
  std::vector<Purge> buried;
  for (const auto& service : services_) {
    std::ranges::move(service->take_tombstones(), std::back_inserter(buried));
    auto unwritten = std::make_shared<std::vector<Purge>>();
    const auto answers = std::make_shared<Answers>(1);
    service->take_unwritten([unwritten, answers](std::vector<Purge> purges) {
      *unwritten = std::move(purges);
      answers->add(true);
    });
    if (!answers->wait(std::chrono::steady_clock::now() + kDevicePatience)) continue;
    std::ranges::move(*unwritten, std::back_inserter(buried));
  }
  return buried;
}

void Disks::take_over() {
  begin_run();
  const auto answers = std::make_shared<Answers>(services_.size());
  for (const auto& service : services_) {
    service->take_over(runs_, [answers](bool good) { answers->add(good); });
  }
  (void)answers->wait(std::chrono::steady_clock::now() + kDevicePatience);
  begin_witness();
  common_->is_held = false;
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

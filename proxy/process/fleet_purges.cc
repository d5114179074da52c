#include "proxy/process/fleet_purges.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/mutex.h"
#include "base/secret_file.h"
#include "config/dump.h"
#include "filter/hash.h"
#include "proxy/disk/open.h"
#include "proxy/fleet/redis_link.h"
#include "proxy/fleet/reply.h"
#include "proxy/observe/log.h"
#include "proxy/process/private_file.h"
#include "proxy/process/purge.h"
#include "proxy/process/state.h"
#include "proxy/settings/router.h"

namespace encore::server {
namespace {

constexpr std::size_t kPasswordBytesMax = 512;

// Returns a name that engine and pages take, from that of the machine.
std::string name_of_machine() {
  std::array<char, 256> buffer{};
  if (::gethostname(buffer.data(), buffer.size() - 1) != 0) return "node";
  std::string name(buffer.data());
  name.resize(std::min<std::size_t>(name.size(), 64));
  for (char& c : name) {
    if (!config::is_node_name({&c, 1})) c = '-';
  }
  return name.empty() ? "node" : name;
}

std::string hex_of(std::uint64_t number) { return fmt::format("{:016x}", number); }

// Differs if two nodes behave differently: secrets, and the node's name, are not in it.
std::string hash_of(config::Config config) {
  config.fleet.node.clear();
  const auto hash = filter::hash_key(filter::HashFamily::kXxh3, {}, config::dump_config(config));
  return hex_of(hash.lo).substr(0, 12);
}

Result<std::string> password_of(const config::Fleet& fleet) {
  if (fleet.password_file.empty()) {
    const config::RedisUrl& engine = **fleet.purges;
    if (engine.user.empty() || !engine.password.empty()) return engine.password;
    return fail("not set, and fleet.purges has a user without a password");
  }
  auto text = read_secret_file(fleet.password_file, kPasswordBytesMax);
  if (!text) {
    return fail(fleet.password_file + ": " + text.error().message);
  }
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  if (text->empty() || text->contains('\n')) {
    return fail(fleet.password_file + " is not one line");
  }
  return text;
}

Result<void> remove_file(const std::string& path) {
  if (path.empty() || ::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return fail("cannot remove " + path + ": " + std::strerror(errno));
}

// Adds a purge in parts: URLs and keys are looked up in each realm, and take memory for all.
void add_parts(PurgeOrder order, std::vector<PurgeOrder>& parts) {
  constexpr std::size_t kTargetsMax = 1024;
  for (const auto list : {&PurgeOrder::urls, &PurgeOrder::keys}) {
    std::vector<std::string>& all = order.*list;
    while (all.size() > kTargetsMax) {
      const auto begin = all.end() - kTargetsMax;
      PurgeOrder& part = parts.emplace_back(PurgeOrder{.soft = order.soft});
      (part.*list).assign(std::make_move_iterator(begin), std::make_move_iterator(all.end()));
      all.erase(begin, all.end());
    }
  }
  parts.push_back(std::move(order));
}

}  // namespace

// A purge that the follower's thread waits for, and its end. Shared with the loop, which may have
// the purge longer.
struct FleetPurges::Purging {
  Mutex mutex;
  std::condition_variable_any changed;
  bool is_stopped ENCORE_GUARDED_BY(mutex) = false;
  std::uint64_t number ENCORE_GUARDED_BY(mutex) = 0;
  std::optional<PurgeResult> result ENCORE_GUARDED_BY(mutex);
};

Result<config::RedisUrl> engine_of(const config::Fleet& fleet) {
  auto password = password_of(fleet);
  if (!password) return std::unexpected(password.error());
  config::RedisUrl engine = **fleet.purges;
  engine.password = *std::move(password);
  return engine;
}

Result<void> reach_engine(const config::RedisUrl& engine) {
  constexpr Nanoseconds kPatience = std::chrono::seconds(1);
  const fleet::StopSignal never;
  fleet::RedisLink link(engine, never);
  if (auto connected = link.connect(kPatience); !connected) return connected;
  const std::vector<fleet::Command> reads = {{"XLEN", engine.stream},
                                             {"HLEN", engine.stream + ":nodes"}};
  const auto replies = link.call(reads, kPatience);
  if (!replies) return std::unexpected(replies.error());
  for (const fleet::Reply& each : *replies) {
    if (each.is_error()) return fail(config::shown(engine) + ": " + fleet::readable(each.text));
  }
  return {};
}

std::vector<std::string> disks_that_exist(const config::Config& config) {
  std::vector<std::string> disks;
  for (const config::Disk& each : config.disk) {
    std::error_code ignored;
    if (!std::filesystem::exists(each.path, ignored)) continue;
    const auto file = disk::open_file(each.path, disk::FileUse::kLook);
    const auto found = file ? disk::find_disk(**file) : std::unexpected(file.error());
    if (found && *found) disks.push_back(hex_of((*found)->uuid.hi) + hex_of((*found)->uuid.lo));
  }
  return disks;
}

// With the state, or where there is none with the first disk, if that is a file.
FleetPurges::Files FleetPurges::files_of(const config::Config& config) {
  if (!config.state.directory.empty()) {
    const std::string front = config.state.directory + "/fleet-";
    return {.position = front + "position", .waiting = front + "waiting"};
  }
  std::error_code ignored;
  if (config.disk.empty() || !std::filesystem::is_regular_file(config.disk[0].path, ignored)) {
    return {};
  }
  const std::string front = config.disk[0].path + ".fleet-";
  return {.position = front + "position", .waiting = front + "waiting"};
}

Result<std::unique_ptr<FleetPurges>> FleetPurges::create(const config::Config& config, Parts parts,
                                                         const Start& start) {
  if (!*config.fleet.purges) return nullptr;
  std::unique_ptr<FleetPurges> made(
      new FleetPurges(config, std::move(parts), start.is_successor, files_of(config)));
  auto options = made->read_options(config, start);
  if (!options) return std::unexpected(options.error());
  made->fleet_ =
      std::make_unique<fleet::Fleet>(made->parts_.loop, std::move(*options), made->make_host());
  return made;
}

FleetPurges::FleetPurges(const config::Config& config, Parts parts, bool is_successor, Files files)
    : parts_(std::move(parts)),
      is_successor_(is_successor),
      files_(std::move(files)),
      purging_(std::make_shared<Purging>()),
      filters_(parts_.loop, parts_.memory, config) {
  config_hash_ = hash_of(config);
}

FleetPurges::~FleetPurges() = default;

Result<fleet::FleetOptions> FleetPurges::read_options(const config::Config& config,
                                                      const Start& start) const {
  auto engine = engine_of(config.fleet);
  if (!engine) return fail("fleet.password_file: " + engine.error().message);
  const auto instance = random_seed();
  if (!instance) return std::unexpected(instance.error());
  fleet::FleetOptions options;
  options.engine = *std::move(engine);
  options.node = config.fleet.node.empty() ? name_of_machine() : config.fleet.node;
  options.instance = filter::to_hex(*instance);
  options.disks = disks_that_exist(config);
  options.holds_objects = is_successor_ || !start.disks.empty();
  options.keep = config.fleet.keep;
  options.wait = config.fleet.wait;
  options.late = config.fleet.late;
  options.filter = filters_.state_at_start(parts_.proxy.shared().kernel->admission_statistics(),
                                           config, is_successor_ || start.adopts_by_order);
  options.filter_bytes_max = config.admission.adopted_memory_bytes + kSavedFormBytes;
  if (files_.position.empty()) {
    if (!config.disk.empty()) {
      log::warn("fleet: set state.directory; without it each start makes all stored objects stale");
    }
    return options;
  }
  const auto position = read_private_file(files_.position);
  if (!position) return std::unexpected(position.error());
  if (*position) {
    auto read = fleet::decode_position(**position);
    const auto is_known = [&](const std::string& disk) {
      return std::ranges::find(read->disks, disk) != read->disks.end();
    };
    if (!read) {
      log::warn("{} {}", files_.position, read.error().message);
    } else if (read->stream != options.engine.stream) {
      log::warn("{} is of the stream {}, fleet.purges of {}", files_.position, read->stream,
                options.engine.stream);
    } else if (!std::ranges::all_of(start.disks, is_known)) {
      log::warn("{} is of other disks", files_.position);
    } else {
      options.position = std::move(*read);
    }
  }
  const auto waiting = read_private_file(files_.waiting);
  if (!waiting) return std::unexpected(waiting.error());
  if (*waiting) options.waiting = fleet::read_frames(**waiting);
  return options;
}

fleet::FleetHost FleetPurges::make_host() {
  return {.apply = [this](std::span<const PurgeOrder> orders) { return apply(orders); },
          .stop =
              [this, purging = purging_] {
                filters_.stop();
                const MutexLock lock(purging->mutex);
                purging->is_stopped = true;
                purging->changed.notify_all();
              },
          .check = check_purge_order,
          .save_position =
              [path = files_.position](const std::string& text) {
                return path.empty() ? Result<void>() : write_private_file(path, text);
              },
          .facts = [this] { return facts(); },
          .keep =
              [path = files_.waiting](const std::string& frames) {
                return path.empty() ? Result<void>() : append_private_file(path, frames);
              },
          .keep_only =
              [path = files_.waiting](const std::string& frames) {
                return path.empty() ? Result<void>() : write_private_file(path, frames);
              },
          .forget = [path = files_.waiting] { return remove_file(path); },
          .save_filter = [this] { return filters_.save(); },
          .adopt_filter = [this](std::string bytes) { return filters_.adopt(std::move(bytes)); }};
}

void FleetPurges::catch_up() {
  if (fleet_->wait_until_current()) return;
  const FleetReport now = fleet_->report();
  // The process before would have gone on, and this one knows as much.
  if (is_successor_) return log::warn("fleet: purges are late from the start: {}", now.fault);
  log::warn("fleet: purges of the time away are unknown ({}); all stored objects are stale",
            now.fault.empty() ? "reading them takes too long" : now.fault);
  (void)server::purge(parts_.proxy.shared(), *parts_.proxy.present_runtime(), validate_all());
}

void FleetPurges::serve() {
  is_serving_.store(true);
  fleet_->serve();
}

void FleetPurges::publish(const PurgeOrder& order, PurgeResult purged,
                          std::function<void(const PurgeResult&)> done) {
  fleet_->publish(order,
                  [purged = std::move(purged), done = std::move(done)](FleetPurge fleet) mutable {
                    purged.fleet = std::move(fleet);
                    done(purged);
                  });
}

void FleetPurges::use(const config::Config& config) {
  fleet::FleetTimes& times = fleet_->times();
  times.keep.store(config.fleet.keep);
  times.wait.store(config.fleet.wait);
  times.late.store(config.fleet.late);
  filters_.use(config);
  const MutexLock lock(purging_->mutex);
  config_hash_ = hash_of(config);
}

// Nothing: the process is about to exit.
std::optional<PurgeResult> FleetPurges::purge(const PurgeOrder& order) {
  Proxy& proxy = parts_.proxy;
  if (!is_serving_.load()) return server::purge(proxy.shared(), *proxy.present_runtime(), order);
  std::uint64_t number = 0;
  {
    const MutexLock lock(purging_->mutex);
    number = ++purging_->number;
    purging_->result.reset();
  }
  const auto done = [purging = purging_, number](const PurgeResult& purged) {
    const MutexLock lock(purging->mutex);
    if (purging->number != number) return;
    purging->result = purged;
    purging->changed.notify_all();
  };
  parts_.loop.post([purge = parts_.purge, order, done] { (void)purge(order, done); });
  const MutexLock lock(purging_->mutex);
  while (!purging_->result && !purging_->is_stopped) purging_->changed.wait(purging_->mutex);
  return std::exchange(purging_->result, std::nullopt);
}

fleet::Applied FleetPurges::apply(std::span<const PurgeOrder> orders) {
  bool is_durable = true;
  std::vector<PurgeOrder> parts;
  for (const PurgeOrder& each : orders) add_parts(each, parts);
  for (const PurgeOrder& each : parts) {
    auto purged = purge(in_realms_of_ours(each));
    // A ban that this node cannot keep: it may be of any object.
    if (purged && !purged->refusal.empty()) {
      log::warn("fleet: a purge is refused here ({}); all stored objects are stale",
                purged->refusal);
      purged = purge(validate_all());
    }
    if (!purged) return fleet::Applied::kStopped;
    is_durable = is_durable && purged->durable.has_value();
  }
  return is_durable ? fleet::Applied::kDone : fleet::Applied::kNotDurable;
}

// Origins may have other hosts and paths here, and so other realms.
PurgeOrder FleetPurges::in_realms_of_ours(PurgeOrder order) const {
  const auto runtime = parts_.proxy.present_runtime();
  std::vector<std::string> keys;
  for (const std::string& key : order.keys) {
    if (key.starts_with(kForwardRealm)) continue;
    for (const config::Origin& origin : runtime->config.origin) {
      const Route route(origin);
      keys.push_back(route.realm() + key.substr(kRealmBytes));
      keys.push_back(route.secure_realm() + key.substr(kRealmBytes));
    }
  }
  order.keys.insert(order.keys.end(), keys.begin(), keys.end());
  return order;
}

fleet::NodeFacts FleetPurges::facts() const {
  const Snapshot sample = parts_.proxy.sample();
  fleet::NodeFacts facts{.version = ENCORE_VERSION, .config = {}, .hit_ratio = {}, .fill = {}};
  {
    const MutexLock lock(purging_->mutex);
    facts.config = config_hash_;
  }
  const std::uint64_t hits = sample.requests_of(OutcomeClass::kHit);
  const std::uint64_t all = hits + sample.requests_of(OutcomeClass::kMiss);
  if (all != 0) facts.hit_ratio = static_cast<double>(hits) / static_cast<double>(all);
  facts.filter = filters_.facts(sample.admission);
  if (!sample.admission.generations.empty()) facts.fill = sample.admission.generations[0].fill;
  return facts;
}

}  // namespace encore::server

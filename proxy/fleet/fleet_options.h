// FleetOptions and FleetHost: a fleet's settings, and its process as it sees it. Values.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "config/redis_url.h"
#include "proxy/fleet/position.h"
#include "proxy/fleet/presence.h"
#include "proxy/fleet/publications.h"
#include "proxy/observe/fleet_report.h"
#include "proxy/settings/purge_order.h"

namespace encore::fleet {

struct FleetOptions {
  config::RedisUrl engine;
  std::string node;
  std::string instance;              // this process' own, which no other ever has
  std::vector<std::string> disks;    // identities of the disks, which a position is of
  std::optional<Position> position;  // nothing: unknown
  bool holds_objects = false;        // objects may be stored that were before this process
  std::vector<Publication> waiting;  // of earlier processes
  Publications::Limits limits = {};
  Nanoseconds keep = std::chrono::hours(7 * 24);
  Nanoseconds wait = std::chrono::seconds(1);
  Nanoseconds late = Nanoseconds(0);  // 0: never
  // kWanted: a filter is adopted, of at most so many bytes in its saved form.
  server::FleetFilter::State filter = server::FleetFilter::State::kOff;
  std::uint64_t filter_bytes_max = 0;
};

// Settings that a reload changes. Thread-safe.
struct FleetTimes {
  std::atomic<Nanoseconds> keep;
  std::atomic<Nanoseconds> wait;
  std::atomic<Nanoseconds> late;
};

enum class Applied : std::uint8_t {
  kDone,
  kNotDurable,  // a disk has failed
  kStopped,     // not done: the process is exiting
};

// Functions of the process. Each is called on one of the fleet's threads, one call at a time.
struct FleetHost {
  // Purges, and returns when it is done, or after FleetHost::stop.
  std::function<Applied(std::span<const server::PurgeOrder> orders)> apply;
  // Ends what waits: apply(), save_filter(), adopt_filter(). Another thread.
  std::function<void()> stop;
  // Checks the texts of a purge. Errors: they are no URLs.
  std::function<Result<void>(const server::PurgeOrder& order)> check;
  // Durable when it returns. Errors: it could not be written.
  std::function<Result<void>(const std::string& position)> save_position;
  std::function<NodeFacts()> facts;
  // Appends to the file of purges that wait; replaces all that it has; makes it empty. Durable when
  // they return.
  std::function<Result<void>(const std::string& frames)> keep;
  std::function<Result<void>(const std::string& frames)> keep_only;
  std::function<Result<void>()> forget;
  // The saved form of this node's filter. Null: there is none, or no time for it now.
  std::function<std::shared_ptr<const std::string>()> save_filter;
  // Adopts such bytes of another node. Returns the insertions in it. Errors: they are none, or are
  // refused.
  std::function<Result<std::uint64_t>(std::string bytes)> adopt_filter;
};

}  // namespace encore::fleet

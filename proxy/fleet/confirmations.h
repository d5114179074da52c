// Confirmations: which nodes have applied which purges of this one, and whose responses wait for
// that. Pure; confined to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "proxy/fleet/stream_id.h"
#include "proxy/settings/purge_order.h"

namespace encore::fleet {

class Confirmations {
 public:
  using Done = std::move_only_function<void(server::FleetPurge)>;
  static constexpr std::size_t kNodesMax = 1024;

  struct Awaited {
    std::vector<std::string> present = {};  // other nodes, which may confirm soon
    std::vector<std::string> away = {};     // other nodes of the last day
  };
  // Purge `number` waits for the engine, and for these nodes until `end`. `node` is this one, which
  // has done it. Calls `done` once, in a later call.
  void add(std::uint64_t number, Awaited nodes, std::string node, MonotonicTime end, Done done);
  // It has this place in the stream.
  void published(std::uint64_t number, const StreamId& id, MonotonicTime now);
  // It waits for the engine to come back; `is_dropped`: it never comes into the stream.
  void unpublished(std::uint64_t number, bool is_dropped);
  // None of those without a place ever comes into the stream.
  void drop_unpublished();
  // The node has applied all up to there.
  void confirmed(const std::string& node, const StreamId& position);
  // Earlier confirmations mean nothing any more: the engine may be another one.
  void forget_positions() { positions_.clear(); }
  // The time of some may be over.
  void expire(MonotonicTime now);
  // When it may be next; nothing: none waits for a time.
  std::optional<MonotonicTime> next_end() const;
  // How many were not confirmed by all in their time.
  std::uint64_t missed() const { return missed_; }
  std::size_t size() const { return waiting_.size(); }

 private:
  struct Waiting {
    std::vector<std::string> missing;
    std::vector<std::string> away;
    std::vector<std::string> confirmed;
    std::optional<StreamId> id;
    MonotonicTime end{};
    Done done;
  };
  using Place = std::map<std::uint64_t, Waiting>::iterator;
  void take_known(Waiting& waiting) const;
  Place finish(Place place, bool is_dropped = false);

  std::map<std::uint64_t, Waiting> waiting_;  // by number, which is also the order of the ends
  std::map<std::string, StreamId> positions_;
  std::uint64_t missed_ = 0;
};

}  // namespace encore::fleet

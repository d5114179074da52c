// Predecessors: the processes that this one has replaced, directly or not, as long as they have
// clients. Confined to its loop's thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "filter/hash.h"
#include "proxy/net/loop.h"
#include "proxy/observe/carried_counts.h"
#include "proxy/observe/predecessor_report.h"
#include "proxy/process/inherited_state.h"
#include "proxy/process/process_link.h"

namespace encore::server {

class Predecessors {
 public:
  // A fourth upgrade is refused while three of them are there.
  static constexpr std::size_t kMost = 3;

  struct Handlers {
    std::function<void(PurgeOrder order, ProcessLink::PurgeDone done)> on_purge;
    // Counted there after the commit.
    std::function<void(const CountTable& counts)> on_counts;
    // Records on disk of these keys are not to be found any more.
    std::function<void(const std::vector<filter::Hash128>& keys, bool has_purge)> on_buried;
    std::function<void()> on_end;  // one of them has ended
  };
  Predecessors(net::Loop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}
  Predecessors(const Predecessors&) = delete;
  Predecessors& operator=(const Predecessors&) = delete;

  // The first of them is the one that this process replaces.
  void add(std::vector<ReplacedProcess> replaced);
  std::size_t count() const { return all_.size(); }
  std::vector<PredecessorReport> reports() const;
  // All of them do the same; calls `done` when they have.
  void purge(const PurgeOrder& order, std::function<void()> done);
  // They are to end as by SIGTERM.
  void end_all();
  // Another process has their channels, and alone reads them.
  void leave();
  // Their channels, borrowed, and process ids.
  std::vector<std::pair<int, pid_t>> channels() const;

 private:
  struct One {
    PredecessorReport report;
    MonotonicTime since;
    std::unique_ptr<ProcessLink> link;
  };
  void add_one(ReplacedProcess replaced);
  void take(One& one, upgrade::ReceivedMessage& received);
  void take_tombstones(const upgrade::Message& message);
  void take_counts(const upgrade::ReceivedMessage& received);
  void remove(const One* one);

  net::Loop& loop_;
  Handlers handlers_;
  std::vector<std::unique_ptr<One>> all_;
};

// A message of those keys; at most kKeysOfMessage.
inline constexpr std::size_t kKeysOfMessage = 2000;
upgrade::Message buried_message(std::span<const filter::Hash128> keys, bool has_purge);

}  // namespace encore::server

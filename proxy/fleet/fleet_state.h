// FleetState: what the threads of a fleet know together. Thread-safe.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "proxy/fleet/fleet_options.h"
#include "proxy/fleet/presence.h"
#include "proxy/fleet/publications.h"
#include "proxy/observe/fleet_report.h"

namespace encore::fleet {

class FleetState {
 public:
  // Lag that is usual: the interval of a presence and of a wait for purges, and as much again.
  static constexpr Nanoseconds kUsualLag = std::chrono::seconds(5);

  explicit FleetState(const FleetOptions& options);

  // --- both links ---

  enum class Part : std::uint8_t { kFollower, kPublisher };
  // The part works as of now: everything is applied, or published.
  void note_current(Part part);
  // Why it does not; empty: it is connected. Logs a change.
  void note_fault(Part part, const std::string& fault);

  // --- reading ---

  void note_applied(std::uint64_t purges, const StreamId& position);
  void note_refused(std::uint64_t entries);
  void note_gap();
  StreamId position() const;
  // Waits until all that the stream has is applied. False: the engine is not connected at the end
  // of `patience`, or reading takes longer than `reading`.
  bool wait_until_current(Nanoseconds patience, Nanoseconds reading);

  // --- publishing ---

  // False: too many wait, and all of them are replaced soon by a purge of everything.
  bool add(Publication publication);
  // The same for one that cannot be added. False.
  bool drop(bool is_soft);
  std::uint64_t next_number();
  // Whether a purge of everything is to replace all that wait, and is a soft one.
  std::optional<bool> take_overflow();
  void replace_all(Publication publication);
  void add_last(Publication publication);
  std::vector<Publication> front(std::size_t count, std::size_t bytes) const;
  void published(const StreamId& id);
  // Those that are in no file yet, which are marked as being.
  std::vector<Publication> take_unkept();
  bool republish_recent();
  StreamId last_published() const;
  std::size_t pending() const;
  // Waits for something to publish or for the stop, at most so long.
  void wait_for_work(Nanoseconds time, bool has_engine);
  void wake();

  // --- nodes ---

  void note_time(std::uint64_t engine_ms);
  std::uint64_t engine_ms() const;
  void set_nodes(NodeTable nodes);
  // True: another process uses this node's name.
  void note_namesake(bool has_namesake);
  std::vector<std::string> present(std::string_view self) const;
  std::vector<std::string> away(std::string_view self) const;
  // Ignored if the node is not known: nobody waits for it, and anybody could send it.
  void confirmed(std::string node, const StreamId& position);
  std::map<std::string, StreamId> take_confirmed();

  // --- filters ---

  // This node asks another one for its filter, or no more: its presence is written immediately.
  void set_wish(std::optional<FilterWish> wish);
  std::optional<FilterWish> wish() const;
  // True if the presence is to be written before its time.
  bool take_presence_due();
  // Waits for a table of nodes that is newer than `seen`, which is then its number. Nothing: the
  // time is over, or the process is about to exit.
  std::optional<NodeTable> wait_for_nodes(std::uint64_t& seen, Nanoseconds time);
  // Changes this node's report.
  void note_filter(server::FleetFilter filter);
  void note_given();

  // Lag in seconds; 0: as usual.
  double lag_seconds() const;
  server::FleetReport report(std::string_view self, Nanoseconds late) const;

 private:
  struct Link {
    MonotonicTime current;
    std::string fault = "not connected yet";
    bool was_current = false;
  };
  Link& link(Part part) ENCORE_REQUIRES(mutex_) { return links_[static_cast<std::size_t>(part)]; }
  Nanoseconds lag() const ENCORE_REQUIRES(mutex_);
  std::uint64_t engine_ms_locked() const ENCORE_REQUIRES(mutex_);

  const std::string engine_;
  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  std::array<Link, 2> links_ ENCORE_GUARDED_BY(mutex_);
  StreamId position_ ENCORE_GUARDED_BY(mutex_);
  Publications publications_ ENCORE_GUARDED_BY(mutex_);
  std::optional<bool> overflow_ ENCORE_GUARDED_BY(mutex_);
  std::uint64_t number_ ENCORE_GUARDED_BY(mutex_) = 0;
  bool is_woken_ ENCORE_GUARDED_BY(mutex_) = false;
  NodeTable nodes_ ENCORE_GUARDED_BY(mutex_);
  std::uint64_t tables_ ENCORE_GUARDED_BY(mutex_) = 0;  // tables of nodes that were read
  std::optional<FilterWish> wish_ ENCORE_GUARDED_BY(mutex_);
  bool is_presence_due_ ENCORE_GUARDED_BY(mutex_) = false;
  std::map<std::string, StreamId> confirmed_ ENCORE_GUARDED_BY(mutex_);
  std::uint64_t engine_ms_ ENCORE_GUARDED_BY(mutex_) = 0;
  MonotonicTime engine_read_ ENCORE_GUARDED_BY(mutex_);
  server::FleetReport counts_ ENCORE_GUARDED_BY(mutex_);
};

}  // namespace encore::fleet

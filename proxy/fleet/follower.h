// Follower: reads the purges of the other nodes from the stream, in their order, and applies them.
// It has a connection and a thread of its own. Why the stream is checked with each read:
// docs/decisions/0601.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/fleet/fleet_options.h"
#include "proxy/fleet/fleet_state.h"
#include "proxy/fleet/purge_entry.h"
#include "proxy/fleet/redis_link.h"

namespace encore::fleet {

class Follower {
 public:
  // All are borrowed.
  Follower(const FleetOptions& options, const FleetHost& host, FleetState& state,
           const StopSignal& stop);

  // The thread: reads until the stop.
  void run();

 private:
  struct Read {
    StreamId id;
    Fields fields;
    bool is_too_large = false;  // it could not be read
  };
  Result<void> follow();
  Result<void> resume();
  Result<Reply> ask(const Command& command);
  Result<StreamFacts> facts();
  Result<std::vector<Read>> read();
  Result<Reply> read_reply();
  Result<bool> has_position();
  // Errors: the process is exiting.
  Result<void> take(std::vector<Read> entries, bool is_broken);
  bool add(Read& entry, std::vector<server::PurgeOrder>& orders);
  void warn(std::string_view text);
  Result<void> apply(const std::vector<server::PurgeOrder>& orders, const StreamId& position);
  Result<void> skip_gap(const StreamFacts& facts);

  const FleetOptions& options_;
  const FleetHost& host_;
  FleetState& state_;
  const StopSignal& stop_;
  RedisLink link_;
  std::optional<StreamId> position_;
  bool is_current_ = false;   // all that there was when it was last read is applied
  bool is_cut_ = false;       // the last reply was too large, and there is its front alone
  bool is_confirmed_ = true;  // the position was sent to the others
  std::size_t count_;         // entries of a read
  std::string save_fault_;
  MonotonicTime next_warning_{};
  std::uint64_t unsaid_ = 0;  // warnings since the last one
};

}  // namespace encore::fleet

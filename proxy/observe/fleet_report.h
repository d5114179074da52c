// Report of the nodes between which purges travel, and of this node's part. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"

namespace encore::server {

// A node as its presence in the engine describes it.
struct FleetNode {
  std::string name;
  std::string version;
  std::string config;               // hash of its configuration, without secrets and its name
  std::optional<double> hit_ratio;  // 0 .. 1; nothing: no request yet
  std::optional<double> fill;       // of the filter's current generation; nothing: no filter
  double lag_seconds = 0;           // of the purges that it applies
  double seen_seconds = 0;          // since its last sign of life
  bool is_here = false;             // this node
  bool is_present = false;          // seen within the last seconds
};

// The admission filters that pass between nodes.
struct FleetFilter {
  enum class State : std::uint8_t {
    kOff,      // none is adopted or given
    kOwn,      // it started with a filter of its own
    kWanted,   // it looks for a node that gives one
    kAdopted,  // of `from`
    kNone,     // none was found: `note`
  };
  State state = State::kOff;
  std::string from = {};         // a node's name
  WallTime adopted = {};         // when
  double seconds = 0;            // from when it served to the adoption
  std::uint64_t insertions = 0;  // of the adopted filter
  std::string note = {};         // why there is none
  std::uint64_t given = 0;       // how often other nodes got that of this one
};

struct FleetReport {
  std::string engine;         // without user and password
  bool connected = false;     // purges can be read and published
  std::string fault;          // why not; empty: connected
  double lag_seconds = 0;     // since all purges were applied here, and published from here
  bool is_late = false;       // longer than usual
  bool fails_ready = false;   // longer than fleet.late
  std::uint64_t pending = 0;  // purges of this node that wait for the engine
  std::uint64_t published = 0;
  std::uint64_t applied = 0;      // purges of other nodes
  std::uint64_t refused = 0;      // entries of the stream that are no purges
  std::uint64_t unconfirmed = 0;  // purges that some node did not confirm in fleet.wait
  std::uint64_t overflows = 0;    // the queue was full: all nodes purge everything
  std::uint64_t gaps = 0;         // purges were missed: all objects became stale
  FleetFilter filter = {};
  std::vector<FleetNode> nodes = {};  // by name
  // True: another process uses this node's name.
  bool has_namesake = false;
};

}  // namespace encore::server

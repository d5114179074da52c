// Options of a fleet: caches that share the requests of a trace, in one tier or two. Values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace encore::sim {

// The choice of a node for a request. bounded: by the hash, with bounded loads.
//  enumerator  name
#define ENCORE_NODE_CHOICES(X) \
  X(kRandom, "random")         \
  X(kHash, "hash")             \
  X(kBounded, "bounded")

// Which caches remember a request. local: the node that got it. hint: that node, which also stores
// what its parent had, or stored on a second request. shared: all nodes together.
//  enumerator  name
#define ENCORE_MEMORIES(X) \
  X(kLocal, "local")       \
  X(kHint, "hint")         \
  X(kShared, "shared")

#define ENCORE_ENUMERATOR(id, name) id,
enum class NodeChoice : std::uint8_t { ENCORE_NODE_CHOICES(ENCORE_ENUMERATOR) };
enum class FleetMemory : std::uint8_t { ENCORE_MEMORIES(ENCORE_ENUMERATOR) };
#undef ENCORE_ENUMERATOR

// In the order of the enumerators.
#define ENCORE_NAME(id, name) std::string_view(name),
inline constexpr std::array kNodeChoiceNames = {ENCORE_NODE_CHOICES(ENCORE_NAME)};
inline constexpr std::array kFleetMemoryNames = {ENCORE_MEMORIES(ENCORE_NAME)};
#undef ENCORE_NAME

std::string_view to_string(NodeChoice choice) noexcept;
std::string_view to_string(FleetMemory memory) noexcept;
// Errors: an unknown name; the message shows it and the accepted ones.
Result<NodeChoice> parse_node_choice(std::string_view name);
Result<FleetMemory> parse_fleet_memory(std::string_view name);

inline constexpr std::uint32_t kNodesMax = 1024;

struct BalanceOptions {
  std::uint32_t nodes = 1;  // 1 to kNodesMax
  NodeChoice balance = NodeChoice::kRandom;
  // bounded: the most that a node may have in progress, in percent of the mean, at least 100.
  std::uint32_t load_percent = 150;
  // bounded: requests in progress for each node, at least 1. As many as this for all nodes together
  // are in progress at any time: as one begins, the oldest ends.
  std::uint32_t load = 16;
  std::uint64_t seed = 1;  // for the random choice
  // The number of the request (from 0) before which the first node is lost; REQUIRES: there is
  // another one then.
  std::uint64_t lost_at = UINT64_MAX;
};

struct FleetOptions {
  BalanceOptions front;
  FleetMemory memory = FleetMemory::kLocal;
  std::uint32_t parents = 0;             // behind the nodes, by the hash of the key; 0: one tier
  std::uint64_t parent_cache_bytes = 0;  // 0: as a node's

  bool has_parents() const { return parents != 0; }
  // All caches: nodes and parents.
  std::uint64_t caches() const { return std::uint64_t{front.nodes} + parents; }
};

}  // namespace encore::sim

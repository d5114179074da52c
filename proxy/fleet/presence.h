// Presence: how nodes describe themselves in the engine, each by a field of one hash. Pure. All
// that is read there is bounded and checked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "proxy/observe/fleet_report.h"

namespace encore::fleet {

inline constexpr Nanoseconds kPresenceInterval = std::chrono::seconds(2);
inline constexpr Nanoseconds kPresentFor = std::chrono::seconds(15);
inline constexpr Nanoseconds kListedFor = std::chrono::hours(24);
inline constexpr std::size_t kNodesMax = 1024;
// Stands for nodes whose names are not known; no node has it.
inline constexpr std::string_view kUnknownNodes = "*";

// The admission filter that a node gives to those that join. Both texts must be equal.
struct FilterFacts {
  std::string form;         // layout, hash, size and number of hashes
  std::string keys;         // a hash of the settings that keys follow from
  std::uint64_t known = 0;  // insertions in it
  friend bool operator==(const FilterFacts&, const FilterFacts&) = default;
};

// A node that joins asks another one for its filter.
struct FilterWish {
  std::string from;  // the other's process
  std::string key;   // a public key for this transfer: net::to_hex()
  friend bool operator==(const FilterWish&, const FilterWish&) = default;
};

// Facts that a process knows of itself.
struct NodeFacts {
  std::string version;
  std::string config;                      // a hash
  std::optional<double> hit_ratio;         // 0 .. 1
  std::optional<double> fill;              // of the filter
  std::optional<FilterFacts> filter = {};  // nothing: it gives none
};

struct Presence {
  std::string instance;  // the process' own
  NodeFacts facts;
  double lag_seconds = 0;
  std::uint64_t seen_ms = 0;  // by the engine's clock
  std::optional<FilterWish> wish = {};
};

std::string encode(const Presence& presence);
// Errors: no JSON of this form, or a text or number beyond the bounds.
Result<Presence> decode_presence(std::string_view json);

// The nodes that the engine knows. A value, thread-compatible.
class NodeTable {
 public:
  enum class Part : bool { kAll, kSome };
  // Takes the fields of the hash, name and value in turn, of which `part` is given. Names of nodes
  // that are long gone are in `stale()` then, at most kNodesMax of them.
  void read(const std::vector<std::string>& fields, std::uint64_t now_ms, Part part = Part::kAll);
  void add(const std::string& node, Presence presence) { nodes_[node] = std::move(presence); }
  const std::vector<std::string>& stale() const { return stale_; }
  // False: there may be other nodes, or nothing was read yet.
  bool is_whole() const { return is_whole_; }
  // How many fields were no node's.
  std::uint64_t refused() const { return refused_; }

  // Nodes but `self`, by name.
  std::vector<std::string> present(std::string_view self, std::uint64_t now_ms) const;
  // kUnknownNodes among them if not all nodes are known.
  std::vector<std::string> away(std::string_view self, std::uint64_t now_ms) const;
  std::vector<server::FleetNode> report(std::string_view self, std::uint64_t now_ms) const;
  // The process that has a node's name; nothing: none is known.
  const Presence* find(const std::string& node) const;
  // Nodes that are present and ask this process, by name.
  std::vector<std::pair<std::string, FilterWish>> wishes_to(std::string_view instance,
                                                            std::uint64_t now_ms) const;
  const std::map<std::string, Presence>& all() const { return nodes_; }

 private:
  std::map<std::string, Presence> nodes_;
  std::vector<std::string> stale_;
  std::uint64_t refused_ = 0;
  bool is_whole_ = false;
};

}  // namespace encore::fleet

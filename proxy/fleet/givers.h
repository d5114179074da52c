// The nodes whose admission filter a node that joins may adopt. A pure function:
// docs/decisions/0606.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/fleet/presence.h"

namespace encore::fleet {

struct Giver {
  std::string node;
  std::string instance;
};

struct Givers {
  // Those that were seen last first; of these, those that know most.
  std::vector<Giver> fit;
  // Nodes with another build or configuration, and what differs.
  std::vector<std::pair<std::string, std::string>> unfit;
};

// `self` is the name of a node in the table, and is compared with the others. Empty filters are
// neither fit nor unfit.
Givers find_givers(const NodeTable& nodes, const std::string& self, std::uint64_t now_ms);

}  // namespace encore::fleet

#include "proxy/fleet/givers.h"

#include <algorithm>
#include <tuple>

namespace encore::fleet {
namespace {

// A node whose last presence is older may hang, or be gone.
constexpr std::uint64_t kFreshMs = 5000;

// Empty: the filter of `other` can be adopted.
std::string difference(const NodeFacts& own, const NodeFacts& other) {
  if (other.version != own.version) {
    return "it is version " + other.version + ", this node " + own.version;
  }
  if (other.filter->form != own.filter->form) {
    return "its filter is \"" + other.filter->form + "\", this node's \"" + own.filter->form + "\"";
  }
  if (other.filter->keys != own.filter->keys) {
    return "its keys differ: modes of [[listen]], host and path of [[origin]], query_drop or "
           "query_sort of [cache]";
  }
  return {};
}

}  // namespace

Givers find_givers(const NodeTable& nodes, const std::string& self, std::uint64_t now_ms) {
  Givers found;
  const Presence* const own = nodes.find(self);
  if (own == nullptr || !own->facts.filter) return found;
  std::vector<const std::pair<const std::string, Presence>*> fit;
  for (const std::string& name : nodes.present(self, now_ms)) {
    const auto& other = *nodes.all().find(name);
    const auto& filter = other.second.facts.filter;
    if (!filter || filter->known == 0) continue;
    if (auto differs = difference(own->facts, other.second.facts); !differs.empty()) {
      found.unfit.emplace_back(name, std::move(differs));
    } else {
      fit.push_back(&other);
    }
  }
  const auto rank = [now_ms](const auto* each) {
    const Presence& presence = each->second;
    const bool is_fresh = presence.seen_ms + kFreshMs >= now_ms || presence.seen_ms >= now_ms;
    return std::tuple(is_fresh, presence.facts.filter->known, presence.seen_ms);
  };
  std::ranges::stable_sort(fit, std::greater<>(), rank);
  for (const auto* each : fit) {
    found.fit.push_back({.node = each->first, .instance = each->second.instance});
  }
  return found;
}

}  // namespace encore::fleet

#include "proxy/fleet/presence.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/redis_url.h"
#include "proxy/net/secrets.h"

namespace encore::fleet {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kPresenceBytesMax = 2048;
constexpr std::size_t kTextBytesMax = 64;

Nanoseconds since(std::uint64_t then_ms, std::uint64_t now_ms) {
  constexpr std::uint64_t kLongest = 4'000'000'000;  // so that nanoseconds do not overflow
  const std::uint64_t ms = now_ms > then_ms ? std::min(now_ms - then_ms, kLongest) : 0;
  return std::chrono::milliseconds(ms);
}

// Nothing: no such text.
std::optional<std::string> text_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string()) return std::nullopt;
  auto text = found->get<std::string>();
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (text.size() > kTextBytesMax || !std::ranges::all_of(text, is_plain)) return std::nullopt;
  return text;
}

std::optional<double> number_of(const Json& json, const char* name, double most) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  const auto number = found->get<double>();
  return std::isfinite(number) && number >= 0 && number <= most ? std::optional(number)
                                                                : std::nullopt;
}

// One that is malformed is left out: a later version may write it otherwise.
std::optional<FilterFacts> filter_of(const Json& json) {
  const auto found = json.find("filter");
  if (found == json.end() || !found->is_object()) return std::nullopt;
  const auto form = text_of(*found, "form");
  const auto keys = text_of(*found, "keys");
  const auto known = found->find("known");
  if (!form || !keys || known == found->end() || !known->is_number_unsigned()) return std::nullopt;
  return FilterFacts{.form = *form, .keys = *keys, .known = known->get<std::uint64_t>()};
}

std::optional<FilterWish> wish_of(const Json& json) {
  const auto found = json.find("wants");
  if (found == json.end() || !found->is_object()) return std::nullopt;
  const auto from = text_of(*found, "from");
  const auto key = text_of(*found, "key");
  if (!from || !key || !net::parse_digest(*key)) return std::nullopt;
  return FilterWish{.from = *from, .key = *key};
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

std::string encode(const Presence& presence) {
  Json json = {{"instance", presence.instance},
               {"version", presence.facts.version},
               {"config", presence.facts.config},
               {"hit_ratio", or_null(presence.facts.hit_ratio)},
               {"fill", or_null(presence.facts.fill)},
               {"lag", presence.lag_seconds},
               {"seen", presence.seen_ms}};
  if (const auto& filter = presence.facts.filter) {
    json["filter"] = {{"form", filter->form}, {"keys", filter->keys}, {"known", filter->known}};
  }
  if (presence.wish) json["wants"] = {{"from", presence.wish->from}, {"key", presence.wish->key}};
  return json.dump();
}

Result<Presence> decode_presence(std::string_view text) {
  const auto malformed = [] { return fail("no presence of a node"); };
  if (text.size() > kPresenceBytesMax) return malformed();
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return malformed();
  const auto instance = text_of(json, "instance");
  const auto version = text_of(json, "version");
  const auto config = text_of(json, "config");
  const auto lag = number_of(json, "lag", 1e9);
  const auto seen = json.find("seen");
  if (!instance || !version || !config || !lag || seen == json.end() ||
      !seen->is_number_unsigned()) {
    return malformed();
  }
  return Presence{.instance = *instance,
                  .facts = {.version = *version,
                            .config = *config,
                            .hit_ratio = number_of(json, "hit_ratio", 1),
                            .fill = number_of(json, "fill", 1),
                            .filter = filter_of(json)},
                  .lag_seconds = *lag,
                  .seen_ms = seen->get<std::uint64_t>(),
                  .wish = wish_of(json)};
}

void NodeTable::read(const std::vector<std::string>& fields, std::uint64_t now_ms, Part part) {
  nodes_.clear();
  stale_.clear();
  refused_ = 0;
  is_whole_ = part == Part::kAll;
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    if (nodes_.size() == kNodesMax) {
      is_whole_ = false;
      break;
    }
    auto presence = decode_presence(fields[i + 1]);
    if (!config::is_node_name(fields[i]) || !presence) {
      ++refused_;
      continue;
    }
    if (since(presence->seen_ms, now_ms) > kListedFor) {
      if (stale_.size() < kNodesMax) stale_.push_back(fields[i]);
    } else {
      nodes_[fields[i]] = std::move(*presence);
    }
  }
}

std::vector<std::string> NodeTable::present(std::string_view self, std::uint64_t now_ms) const {
  std::vector<std::string> names;
  for (const auto& [name, presence] : nodes_) {
    if (name != self && since(presence.seen_ms, now_ms) <= kPresentFor) names.push_back(name);
  }
  return names;
}

std::vector<std::string> NodeTable::away(std::string_view self, std::uint64_t now_ms) const {
  std::vector<std::string> names;
  for (const auto& [name, presence] : nodes_) {
    if (name != self && since(presence.seen_ms, now_ms) > kPresentFor) names.push_back(name);
  }
  if (!is_whole_) names.emplace_back(kUnknownNodes);
  return names;
}

std::vector<server::FleetNode> NodeTable::report(std::string_view self,
                                                 std::uint64_t now_ms) const {
  std::vector<server::FleetNode> nodes;
  for (const auto& [name, presence] : nodes_) {
    const Nanoseconds age = since(presence.seen_ms, now_ms);
    nodes.push_back({.name = name,
                     .version = presence.facts.version,
                     .config = presence.facts.config,
                     .hit_ratio = presence.facts.hit_ratio,
                     .fill = presence.facts.fill,
                     .lag_seconds = presence.lag_seconds,
                     .seen_seconds = std::chrono::duration<double>(age).count(),
                     .is_here = name == self,
                     .is_present = age <= kPresentFor});
  }
  return nodes;
}

std::vector<std::pair<std::string, FilterWish>> NodeTable::wishes_to(std::string_view instance,
                                                                     std::uint64_t now_ms) const {
  std::vector<std::pair<std::string, FilterWish>> wishes;
  for (const auto& [name, presence] : nodes_) {
    if (!presence.wish || presence.wish->from != instance) continue;
    if (since(presence.seen_ms, now_ms) <= kPresentFor) wishes.emplace_back(name, *presence.wish);
  }
  return wishes;
}

const Presence* NodeTable::find(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : &found->second;
}

}  // namespace encore::fleet

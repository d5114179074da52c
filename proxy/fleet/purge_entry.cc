#include "proxy/fleet/purge_entry.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "config/redis_url.h"

namespace encore::fleet {
namespace {

using server::PurgeOrder;

// Null: the field is no list of targets.
template <typename Order>
auto* targets_of(Order& order, std::string_view name) {
  if (name == "url") return &order.urls;
  if (name == "prefix") return &order.prefixes;
  if (name == "tag") return &order.tags;
  return name == "key" ? &order.keys : nullptr;
}
constexpr std::string_view kTargets[] = {"url", "prefix", "tag", "key"};

void add(Fields& fields, std::string_view name, std::string_view value) {
  fields.emplace_back(name);
  fields.emplace_back(value);
}

Result<void> check_bounds(std::span<const std::string> fields) {
  std::size_t bytes = 0;
  for (const std::string& each : fields) bytes += each.size();
  if (bytes > kEntryBytesMax) return fail("more than " + std::to_string(kEntryBytesMax) + " bytes");
  if (fields.size() > 2 * kEntryFieldsMax) {
    return fail("more than " + std::to_string(kEntryFieldsMax) + " fields");
  }
  return {};
}

std::unexpected<Error> unknown_field(std::string_view name) {
  return fail("unknown field \"" + std::string(name) + "\"; accepted: url, prefix, tag, all, soft");
}

Result<void> take_flag(bool& flag, std::string_view name, std::string_view value) {
  if (value != "1" && value != "0") {
    return fail(std::string(name) + " is \"" + std::string(value) + "\"; accepted: 0, 1");
  }
  flag = value == "1";
  return {};
}

Result<void> take_ban(PurgeOrder& order, std::string_view name, const std::string& value) {
  if (!order.ban) order.ban.emplace();
  server::BanOrder& ban = *order.ban;
  if (name == "ban-forward") return take_flag(ban.forward, name, value);
  // Disks keep each part of a ban in a line.
  if (value.contains('\n')) return fail(std::string(name) + " has a line feed");
  if (name == "ban-tag") {
    ban.tags.push_back(value);
    return {};
  }
  std::string* const text = name == "ban-host"   ? &ban.host
                            : name == "ban-url"  ? &ban.url
                            : name == "ban-type" ? &ban.content_type
                                                 : nullptr;
  if (text == nullptr) return unknown_field(name);
  *text = value;
  return {};
}

Result<void> take_field(PurgeEntry& entry, std::string_view name, const std::string& value) {
  if (auto* const targets = targets_of(entry.order, name)) {
    if (value.empty()) return fail("an empty " + std::string(name));
    targets->push_back(value);
    return {};
  }
  if (name == "node" || name == "instance") {
    if (!config::is_node_name(value)) return fail("a malformed " + std::string(name));
    (name == "node" ? entry.node : entry.instance) = value;
    return {};
  }
  if (name == "number") {
    const char* const end = value.data() + value.size();
    const auto [parsed, status] = std::from_chars(value.data(), end, entry.number);
    if (status != std::errc{} || parsed != end) return fail("a malformed number");
    return {};
  }
  if (name == "all") return take_flag(entry.order.all, name, value);
  if (name == "validate") return take_flag(entry.order.validate, name, value);
  if (name == "soft") return take_flag(entry.order.soft, name, value);
  if (name == "mark") return take_flag(entry.is_mark, name, value);
  if (name.starts_with("ban-")) return take_ban(entry.order, name, value);
  return unknown_field(name);
}

bool has_target(const PurgeOrder& order) {
  return order.all || order.ban || !order.urls.empty() || !order.prefixes.empty() ||
         !order.tags.empty() || !order.keys.empty();
}

}  // namespace

Result<Fields> encode(const PurgeEntry& entry) {
  Fields fields;
  if (!entry.node.empty()) {
    add(fields, "node", entry.node);
    add(fields, "instance", entry.instance);
    add(fields, "number", std::to_string(entry.number));
  }
  if (entry.is_mark) add(fields, "mark", "1");
  const PurgeOrder& order = entry.order;
  for (const std::string_view name : kTargets) {
    for (const std::string& each : *targets_of(order, name)) add(fields, name, each);
  }
  if (order.all) add(fields, "all", "1");
  if (order.soft) add(fields, "soft", "1");
  if (order.validate) add(fields, "validate", "1");
  if (order.ban) {
    add(fields, "ban-forward", order.ban->forward ? "1" : "0");
    if (!order.ban->host.empty()) add(fields, "ban-host", order.ban->host);
    if (!order.ban->url.empty()) add(fields, "ban-url", order.ban->url);
    if (!order.ban->content_type.empty()) add(fields, "ban-type", order.ban->content_type);
    for (const std::string& each : order.ban->tags) add(fields, "ban-tag", each);
  }
  if (auto checked = check_bounds(fields); !checked) return std::unexpected(checked.error());
  return fields;
}

Result<PurgeEntry> decode(std::span<const std::string> fields) {
  if (auto checked = check_bounds(fields); !checked) return std::unexpected(checked.error());
  if (fields.size() % 2 != 0) return fail("a field without a value");
  PurgeEntry entry;
  for (std::size_t i = 0; i < fields.size(); i += 2) {
    auto taken = take_field(entry, fields[i], fields[i + 1]);
    if (!taken) return std::unexpected(taken.error());
  }
  if (entry.node.empty() != entry.instance.empty()) return fail("a node without an instance");
  const PurgeOrder& order = entry.order;
  if (!entry.is_mark && !has_target(order)) {
    return fail("no target; accepted: url, prefix, tag or all");
  }
  if (order.validate && !(order.all && order.soft)) return fail("validate without all and soft");
  return entry;
}

bool is_of_a_node(std::span<const std::string> fields) {
  for (std::size_t i = 0; i < fields.size(); i += 2) {
    if (fields[i] == "node") return true;
  }
  return false;
}

std::vector<PurgeOrder> merged(std::span<const PurgeOrder> orders) {
  PurgeOrder hard;
  PurgeOrder soft{.soft = true};
  std::vector<PurgeOrder> all;
  bool is_validated = false;
  for (const PurgeOrder& each : orders) {
    is_validated = is_validated || each.validate;
    if (each.ban) {
      all.push_back(each);
      continue;
    }
    PurgeOrder& into = each.soft ? soft : hard;
    for (const std::string_view name : kTargets) {
      const auto& from = *targets_of(each, name);
      auto& to = *targets_of(into, name);
      to.insert(to.end(), from.begin(), from.end());
    }
    into.all = into.all || each.all;
  }
  // Removed objects need not become stale before.
  if (is_validated) soft = server::validate_all();
  if (has_target(soft) && !hard.all) all.insert(all.begin(), std::move(soft));
  if (has_target(hard)) all.insert(all.begin(), std::move(hard));
  return all;
}

}  // namespace encore::fleet

#include "config/draft.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "cache/spatial_sample.h"
#include "config/derive.h"
#include "config/network.h"
#include "config/texts.h"

namespace encore::config {
namespace {

std::string listed(std::span<const std::string_view> names) {
  std::string text;
  for (const auto name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

std::string unknown(std::string_view thing, std::string_view name,
                    std::span<const std::string_view> accepted, std::string_view elsewhere) {
  std::string text = "unknown " + std::string(thing);
  const std::string_view near = elsewhere.empty() ? nearest(name, accepted) : elsewhere;
  if (!near.empty()) text += ", did you mean \"" + std::string(near) + "\"?";
  return text + "; accepted: " + listed(accepted);
}

// True if two listeners cannot have these both. "::" is every address of the machine, of IPv4 too,
// and 0.0.0.0 every one of IPv4. Port 0 is any that is free.
bool overlap(const Endpoint& a, const Endpoint& b) {
  if (a.socket.empty() != b.socket.empty()) return false;
  if (!a.socket.empty()) {
    return std::filesystem::path(a.socket).lexically_normal() ==
           std::filesystem::path(b.socket).lexically_normal();
  }
  if (a.port == 0 || a.port != b.port) return false;
  const auto one = parse_cidr(a.address);
  const auto other = parse_cidr(b.address);
  if (!one || !other) return a.address == b.address;
  static const Cidr kEvery = {.address = {}, .prefix_bits = 0};
  static const Cidr kEveryV4 = *parse_cidr("0.0.0.0/0");
  const auto covers = [](const Cidr& wide, const Cidr& narrow) {
    if (wide.address == kEvery.address) return true;
    return wide.address == kEveryV4.address && kEveryV4.contains(narrow.address);
  };
  return one->address == other->address || covers(*one, *other) || covers(*other, *one);
}

// A number or a switch that would be right as a text.
std::string quotes_hint(const Key& key, const Value& written) {
  std::string text;
  if (const auto* whole = std::get_if<std::int64_t>(&written)) text = std::to_string(*whole);
  if (const auto* flag = std::get_if<bool>(&written)) text = *flag ? "true" : "false";
  if (!text.empty() && accept(key, Value(text))) {
    return key.secret ? "; it needs quotes"
                      : "; write: " + std::string(key.name) + " = " + in_quotes(text);
  }
  const auto* numbers = std::get_if<std::vector<std::int64_t>>(&written);
  if (numbers == nullptr) return {};
  std::vector<std::string> texts;
  for (const std::int64_t number : *numbers) {
    texts.push_back(std::to_string(number));
    text += (text.empty() ? "" : ", ") + in_quotes(texts.back());
  }
  if (!accept(key, Value(texts))) return {};
  return "; write: " + std::string(key.name) + " = [" + text + "]";
}

std::string element(std::string_view section, std::size_t index, std::string_view key) {
  return std::string(section) + "." + std::to_string(index) + "." + std::string(key);
}

}  // namespace

std::string fault_line(std::string_view where, std::string_view path, std::string_view what) {
  std::string line(where);
  // "--set cache.memory" names the key already.
  const bool named = path.empty() || line.ends_with(" " + std::string(path));
  if (!named) line += (line.empty() ? "" : ": ") + std::string(path);
  return line + ": " + std::string(what);
}

void Draft::fault(std::string_view where, std::string_view path, std::string_view what) {
  faults_.push_back(fault_line(where, path, what));
}

void Draft::fault_at(std::string_view path, std::string_view what) {
  fault(where(path), path, what);
}

std::string_view Draft::where(std::string_view path) const {
  const auto found = where_.find(path);
  return found == where_.end() ? std::string_view{} : found->second;
}

void Draft::resize(const Section& section, std::size_t count, std::string_view where) {
  section.resize(config, count);
  where_.insert_or_assign(std::string(section.name), std::string(where));
}

void Draft::put(const Section& section, std::size_t index, const Key& key, const Value& written,
                std::string_view where) {
  const std::string path = key_path(section, index, key);
  where_.insert_or_assign(path, std::string(where));
  const auto value = accept(key, written);
  if (!value) {
    fault(where, path, value.error().message + quotes_hint(key, written));
    return;
  }
  key.set(section.at(config, index), *value);
}

void Draft::unknown_section(std::string_view where, std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& section : schema()) names.push_back(section.name);
  fault(where, name, unknown("section", name, names, {}));
}

void Draft::unknown_key(std::string_view where, const Section& section, std::string_view path,
                        std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& key : section.keys) names.push_back(key.name);
  std::string elsewhere;
  if (nearest(name, names).empty()) {
    for (const auto& other : schema()) {
      if (find_key(other, name) == nullptr) continue;
      elsewhere = std::string(other.name) + "." + std::string(name);
      break;
    }
  }
  fault(where, path, unknown("key", name, names, elsewhere));
}

void Draft::cross_check() {
  check_required();
  check_listeners();
  check_forward();
  check_intercept();
  check_origins();
  check_rules();
  check_compression();
  check_disks();
  check_admission();
  check_limits();
  check_filters();
  check_shadow();
}

void Draft::check_required() {
  for (const auto& section : schema()) {
    for (std::size_t i = 0; section.repeated && i < section.count(config); ++i) {
      for (const auto& key : section.keys) {
        const std::string path = key_path(section, i, key);
        if (!key.required || !where(path).empty()) continue;
        fault(where(section.name), path, "is missing; accepted: " + accepted_text(key));
      }
    }
  }
}

void Draft::check_forward() {
  const auto& parent = *config.forward.parent;
  if (!parent || !parent->tls) return;
  fault_at("forward.parent",
           "\"" + config.forward.parent.text() + "\" uses https; accepted: \"http://host:port\"");
}

void Draft::check_listeners() {
  if (config.listen.empty()) fault_at("listen", "no listener; accepted: at least one [[listen]]");
  std::vector<std::pair<const Endpoint*, std::string>> taken;
  const auto claim = [&](const auto& address, const Endpoint& endpoint, const std::string& path) {
    for (const auto& [other, whose] : taken) {
      if (!overlap(*other, endpoint)) continue;
      fault_at(path, "\"" + address.text() + "\" is used by " + whose +
                         "; accepted: an address of its own");
      return;
    }
    taken.emplace_back(&endpoint, path);
  };
  for (std::size_t i = 0; i < config.listen.size(); ++i) {
    const Listen& listen = config.listen[i];
    claim(listen.address, *listen.address, element("listen", i, "address"));
    check_listen_tls(i);
    if (listen.mode == Mode::kReverse && config.origin.empty()) {
      fault_at(element("listen", i, "mode"),
               "\"reverse\" without an origin; accepted: with at least one [[origin]]");
    }
  }
  add_admin_socket();
  for (const OptionalEndpointText& address : config.admin.address) {
    if (*address) claim(address, **address, "admin.address");
  }
}

// Commands find it by the same config. A name that is too long, or relative, gives none.
void Draft::add_admin_socket() {
  if (config.state.directory.empty() || !where("admin.address").empty()) return;
  const std::string address = "unix:" + admin_socket_in(config.state.directory);
  if (OptionalEndpointText::parse(address)) config.admin.address.emplace_back(address);
}

// A certificate and its key come together.
void Draft::check_certificate(const std::string& certificate, const std::string& key,
                              const std::string& path) {
  if (certificate.empty() == key.empty()) return;
  const std::string given = path + (key.empty() ? "tls_certificate" : "tls_key");
  const std::string missing = path + (key.empty() ? "tls_key" : "tls_certificate");
  fault_at(given, "without " + missing + "; accepted: both or none");
}

void Draft::check_origins() {
  check_certificate(config.upstream.tls_certificate, config.upstream.tls_key, "upstream.");
  std::map<std::pair<std::string, std::string>, std::size_t> routes;
  for (std::size_t i = 0; i < config.origin.size(); ++i) {
    const Origin& origin = config.origin[i];
    check_certificate(origin.tls_certificate, origin.tls_key, element("origin", i, ""));
    const auto [other, fresh] = routes.emplace(std::pair(origin.host, origin.path), i);
    if (fresh) continue;
    const bool host_written = !where(element("origin", i, "host")).empty();
    fault_at(element("origin", i, host_written ? "host" : "path"),
             "\"" + origin.host + "\" with path \"" + origin.path + "\" is origin." +
                 std::to_string(other->second) + " already; accepted: each pair once");
  }
}

void Draft::check_disks() {
  if (config.disk.size() > cache::kDisksMax) {
    fault_at("disk", std::to_string(config.disk.size()) + " disks; accepted: up to " +
                         std::to_string(cache::kDisksMax));
  }
  std::map<std::string, std::string> taken = {{config.log.access, "log.access"},
                                              {config.log.decisions, "log.decisions"}};
  for (std::size_t i = 0; i < config.disk.size(); ++i) {
    const Disk& disk = config.disk[i];
    const std::string path = element("disk", i, "path");
    const auto [other, fresh] =
        taken.emplace(std::filesystem::path(disk.path).lexically_normal().string(), path);
    if (!fresh && !disk.path.empty()) {
      fault_at(path, "\"" + disk.path + "\" is used by " + other->second +
                         "; accepted: a file or device of its own");
    }
    if (disk.size_bytes == 0) continue;  // a fault already
    if (const auto layout = derive_disk(disk); !layout) {
      fault_at(element("disk", i, "size"), layout.error().message + " with segments of " +
                                               format_bytes(segment_bytes_of(disk)));
    }
  }
}

void Draft::check_probation() {
  Admission& admission = config.admission;
  if (config.disk.empty()) {
    fault_at("admission.policy",
             "\"probation\" without a [[disk]]; accepted: with one, or \"second-hit\"");
  }
  if (admission.hash != filter::HashFamily::kXxh3) {
    fault_at("admission.hash",
             "\"" + std::string(to_string(admission.hash)) +
                 "\" with \"probation\", which hashes keys by xxh3 only; accepted: \"xxh3\"");
  }
  if (!admission.refresh) {
    fault_at("admission.refresh", "false with \"probation\"; accepted: true");
  }
  if (admission.bits == 0 && where("admission.fpr").empty()) admission.fpr = kProbationFpr;
}

void Draft::check_admission() {
  Admission& admission = config.admission;
  // Another number of hashes without a layout comes from the textbook's formula, and that is the
  // classic filter's (docs/decisions/0011).
  const bool own_hashes = admission.hashes != 0 && admission.hashes != filter::kSplitHashes;
  if (own_hashes && where("admission.layout").empty()) {
    admission.layout = filter::Layout::kClassic;
  }
  const std::size_t faults_before = faults_.size();
  // Writes to disks are worth a policy that weighs them, if its filter is possible.
  if (where("admission.policy").empty() && !config.disk.empty() && admission.refresh &&
      admission.hash == filter::HashFamily::kXxh3) {
    admission.policy = Policy::kProbation;
  }
  if (admission.policy == Policy::kProbation) {
    check_probation();
  }
  if (own_hashes && admission.layout == filter::Layout::kSplit) {
    fault_at("admission.hashes", std::to_string(admission.hashes) +
                                     " with layout \"split\"; accepted: 8, or another layout");
  }
  if (admission.bits != 0) {
    if (where("admission.fpr").empty()) admission.fpr = 0;
    if (admission.fpr != 0) {
      fault_at("admission.fpr",
               "together with admission.bits, from which it follows; accepted: one of the two");
    }
    if (admission.hashes == 0 && admission.capacity == 0 &&
        admission.layout != filter::Layout::kSplit) {
      fault_at("admission.bits",
               "without hashes and capacity; accepted: bits with hashes, capacity or both");
    }
  } else if (admission.fpr == 0) {
    fault_at("admission.fpr", "0 without bits; accepted: 1e-09 .. 0.5");
  }
  if (faults_.size() != faults_before) return;
  const auto plan = derive_filter(config);
  if (plan) return;
  const bool is_derived = admission.bits == 0 && admission.capacity == 0 && !config.disk.empty();
  fault_at(admission.bits != 0 ? "admission.bits" : "admission.capacity",
           plan.error().message +
               (is_derived ? " (a capacity for what memory and disks can hold at a mean of " +
                                 format_bytes(config.cache.mean_object_bytes) +
                                 " an object, cache.mean_object)"
                           : ""));
}

void Draft::check_are_listeners(const std::string& path, const std::vector<std::string>& names) {
  std::string there;
  for (const Listen& listen : config.listen) {
    there += (there.empty() ? "\"" : ", \"") + listen.address.text() + "\"";
  }
  for (const std::string& name : names) {
    const auto is_named = [&](const Listen& listen) { return listen.address.text() == name; };
    if (std::ranges::none_of(config.listen, is_named)) {
      fault_at(path, "\"" + name + "\" is not the address of a [[listen]]; accepted: " + there);
    }
  }
}

void Draft::check_compression() {
  std::set<std::string_view> known;
  for (const std::string& coding : config.compression.codings) {
    if (known.insert(coding).second) continue;
    fault_at("compression.codings", "\"" + coding + "\" twice; accepted: each coding once");
  }
}

void Draft::check_limits() {
  for (std::size_t i = 0; i < config.limit.size(); ++i) {
    check_are_listeners(element("limit", i, "listener"), config.limit[i].listener);
  }
  if (config.limits.uri_bytes > config.limits.head_bytes) {
    fault_at(where("limits.uri").empty() ? "limits.head" : "limits.uri",
             "limits.uri is " + format_bytes(config.limits.uri_bytes) + ", limits.head " +
                 format_bytes(config.limits.head_bytes) +
                 "; accepted: a URI no longer than the head it stands in");
  }
  const Upstream& upstream = config.upstream;
  if (upstream.dns_ttl_min > upstream.dns_ttl_max) {
    fault_at(
        where("upstream.dns_ttl_min").empty() ? "upstream.dns_ttl_max" : "upstream.dns_ttl_min",
        "upstream.dns_ttl_min is " + format_duration(upstream.dns_ttl_min) +
            ", upstream.dns_ttl_max " + format_duration(upstream.dns_ttl_max) +
            "; accepted: a lower bound no higher than the upper one");
  }
  const Log& log = config.log;
  if (!log.decisions.empty() && (log.decisions == log.access || log.decisions == "-")) {
    fault_at("log.decisions", "\"" + log.decisions + "\"; accepted: a file of its own");
  }
}

void Draft::check_filters() {
  const Filters& filters = config.filters;
  if (const auto changed = derive_changed_filter(filters); !changed) {
    fault_at("filters.capacity", changed.error().message);
  }
  const bool resident = publishes(filters, kPublishResident);
  if (const auto made = derive_resident_filter(config); resident && !made) {
    const std::string most = std::to_string(resident_capacity_max(filters));
    if (filters.resident_capacity != 0) {
      fault_at("filters.resident_capacity", std::to_string(filters.resident_capacity) + ": " +
                                                made.error().message + "; accepted: up to " + most);
    } else {
      // It follows from keys that say nothing of filters: the one that sets the limit is at fault.
      fault_at("filters.hash",
               made.error().message + ": \"resident\" is made for " +
                   std::to_string(resident_capacity_of(config.cache)) +
                   " responses, one for each 16 KiB of cache.memory; accepted: hash = \"xxh3\", or "
                   "a filters.resident_capacity of up to " +
                   most);
    }
  }
  if (filters.squid_digest && !resident) {
    fault_at(
        "filters.squid_digest",
        "true without the filter of cached URLs; accepted: with \"resident\" in filters.publish");
  }
  if (!filters.path.empty() && filters.publish.empty()) {
    fault_at("filters.path",
             "\"" + filters.path + "\" with nothing published; accepted: with filters.publish");
  }
}

void Draft::check_shadow() {
  std::set<std::string_view> known;
  for (const ShadowPolicyText& policy : config.shadow.policies) {
    if (!known.insert(policy.text()).second) {
      fault_at("shadow.policies", "\"" + policy.text() + "\" twice; accepted: each policy once");
    }
    const auto whole = shadow_kernel(config, *policy);
    if (!whole) {
      fault_at("shadow.policies", "\"" + policy.text() + "\": " + whole.error().message);
      continue;
    }
    const auto sampled = cache::scaled_kernel(*whole, 1.0 / config.shadow.sample);
    if (const auto fine = check_options(sampled); !fine) {
      fault_at("shadow.policies", "\"" + policy.text() + "\" with a sample of 1 in " +
                                      std::to_string(config.shadow.sample) + ": " +
                                      fine.error().message);
    }
  }
}

Result<Config> Draft::finish() && {
  if (faults_.empty()) return std::move(config);
  std::string text;
  for (const auto& line : faults_) text += (text.empty() ? "" : "\n") + line;
  return fail(std::move(text));
}

}  // namespace encore::config

// The text of --check-config.
#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/readable.h"
#include "base/units.h"
#include "config/derive.h"
#include "config/redis_url.h"
#include "config/schema.h"
#include "filter/hash.h"

namespace encore::config {
namespace {

std::string choice_text(std::string_view section, std::string_view name, const void* values) {
  const auto* key = find_key(*find_section(section), name);
  const auto index = std::get<std::int64_t>(key->get(values));
  return std::string(key->choices[static_cast<std::size_t>(index)]);
}

std::string two_decimals(double value) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return text.data();
}

std::string percent(double share) { return plain_number(share * 100, 4) + " %"; }

std::string plural(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

class Report {
 public:
  void line(std::string_view label, std::string_view text) {
    constexpr std::size_t kLabelWidth = 22;
    std::string padded(label);
    padded.resize(std::max(padded.size() + 1, kLabelWidth), ' ');
    text_ += padded + std::string(text) + "\n";
  }
  void note(std::string_view text) { text_ += "note: " + std::string(text) + "\n"; }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

void report_listeners(const Config& config, Report& report) {
  for (const auto& listen : config.listen) {
    const std::string tls =
        listen.tls.empty() ? "" : ", TLS with " + plural(listen.tls.size(), "certificate");
    report.line("listen",
                listen.address.text() + " " + choice_text("listen", "mode", &listen) + tls);
  }
  for (const auto& origin : config.origin) {
    std::string servers;
    for (const auto& server : origin.servers) servers += " " + server.text();
    report.line("origin", origin.host + " " + origin.path + " ->" + servers);
  }
  if (!config.origin.empty() &&
      std::ranges::find(config.listen, Mode::kReverse, &Listen::mode) == config.listen.end()) {
    report.note("[[origin]] has no effect: no [[listen]] has mode = \"reverse\".");
  }
  for (const auto& listen : config.listen) {
    if (listen.purge_to_origin && !listen.purge_clients.empty()) {
      report.note("listen " + listen.address.text() +
                  ": purge_to_origin has no effect, because purge_clients is set.");
    }
    if (listen.mode != Mode::kReverse || !listen.purge_clients.empty() || listen.purge_to_origin) {
      continue;
    }
    report.note("listen " + listen.address.text() +
                ": PURGE and BAN get 403, because listen.purge_clients is empty.");
  }
  report.line("admin", admin_text(config.admin));
  for (const std::string& warning : admin_warnings(config.admin)) report.note(warning);
}

// Only the first of the matching rules applies: a rule behind one that matches all requests never
// applies.
void report_rules(const Config& config, Report& report) {
  const auto any = [](const std::vector<std::string>& globs) {
    return globs.empty() || std::ranges::find(globs, "*") != globs.end();
  };
  const auto first = std::ranges::find_if(config.rule, [&](const Rule& rule) {
    return any(rule.host) && any(rule.path) && rule.content_type.empty() && rule.method.empty() &&
           rule.listener.empty() && rule.clients.empty();
  });
  const auto shown = [&](std::vector<Rule>::const_iterator rule) {
    return "rule." + std::to_string(rule - config.rule.begin()) +
           (rule->name.empty() ? std::string() : " (" + rule->name + ")");
  };
  std::string behind;
  for (auto rule = first; rule != config.rule.end(); ++rule) {
    if (rule != first) behind += (behind.empty() ? "" : ", ") + shown(rule);
  }
  if (behind.empty()) return;
  report.note(shown(first) + " matches every request, so that later rules never apply: " + behind +
              ".");
}

// The consequences for the proxy's users are reported in full.
void report_intercept(const Config& config, Report& report) {
  const Intercept& intercept = config.intercept;
  const auto listed = [](const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  };
  if (!intercept.is_on()) {
    if (!intercept.hosts.empty()) {
      report.note("intercept.hosts has no effect: set intercept.ca_certificate.");
    }
    if (!intercept.ca_certificate.empty()) {
      report.note("intercept.ca_certificate has no effect: intercept.hosts is empty.");
    }
    return;
  }
  std::string ports;
  for (const std::uint64_t port : intercept.ports) {
    ports += (ports.empty() ? "" : ", ") + std::to_string(port);
  }
  report.line("decrypted",
              "CONNECT to " + listed(intercept.hosts) + " at port " + ports +
                  (intercept.never.empty() ? std::string() : ", never " + listed(intercept.never)));
  report.line("other CONNECTs", "pass unread");
  report.note(
      "the proxy reads all traffic of clients with these hosts. You must inform its users.");
}

bool is_bounded_by_segment(const Config& config, std::uint64_t bytes) {
  return std::ranges::any_of(config.disk,
                             [bytes](const Disk& disk) { return segment_bound(disk) == bytes; });
}

void report_cache(const Config& config, std::uint32_t cores, Report& report) {
  const Cache& cache = config.cache;
  report.line("workers", std::to_string(effective_workers(config.workers, cores)) +
                             (config.workers.count == 0 ? " (one per core)" : ""));
  report.line("memory", format_bytes(cache.memory_bytes) + " in " + plural(cache.shards, "shard") +
                            ", eviction " + choice_text("cache", "eviction", &cache));
  const std::uint64_t effective = effective_max_object(config);
  const std::uint64_t in_memory = max_object_in_memory(config);
  std::string object = format_bytes(effective) + " (" + std::to_string(effective) + " bytes)";
  if (effective < cache.max_object_bytes) {
    const bool by_segment = effective > in_memory && is_bounded_by_segment(config, effective);
    const std::string_view room =
        effective > in_memory ? "an eighth of the disks" : "an eighth of the memory";
    object += ", " + std::string(by_segment ? "a segment of the disks" : room) +
              "; configured: " + format_bytes(cache.max_object_bytes);
  }
  if (effective > in_memory) {
    object += "; on disk only beyond " + format_bytes(in_memory) + ", an eighth of the memory";
  }
  report.line("max_object", object);
}

void report_compression(const Config& config, Report& report) {
  const Compression& compression = config.compression;
  if (compression.codings.empty()) return;
  std::string codings;
  for (const std::string& coding : compression.codings) {
    codings += (codings.empty() ? "" : ", ") + coding;
  }
  report.line("compression", codings + ", unless known to be below " +
                                 format_bytes(compression.min_size_bytes) + "; at most " +
                                 format_bytes(compression.memory_bytes) + " for bodies in flight");
}

void report_disks(const Config& config, Report& report) {
  if (config.disk.empty()) return;
  const Cache& cache = config.cache;
  const std::string mean = format_bytes(cache.mean_object_bytes);
  for (const Disk& disk : config.disk) {
    const auto layout = derive_disk(disk);
    if (!layout) continue;
    report.line("disk", disk.path + ": " + format_bytes(disk.size_bytes) + " in " +
                            plural(layout->segments, "segment") + " of " +
                            format_bytes(layout->segment_bytes));
  }
  report.line("written to disk",
              "what lives " + format_duration(cache.disk_life_min) + " or longer, " +
                  (cache.disk_write_rate == 0
                       ? std::string("without a rate limit")
                       : "up to " + format_bytes(cache.disk_write_rate) + " a second") +
                  "; of a reclaimed segment up to " + std::to_string(cache.disk_reinsert) +
                  " % again");
  const ObjectEstimate estimate = estimate_objects(config);
  report.line("index of the disks", format_bytes(estimate.index_bytes) + " for " +
                                        std::to_string(estimate.on_disk) + " objects of " + mean +
                                        ", at most " + format_bytes(estimate.index_bytes_max) +
                                        ", half of the memory");
  if (estimate.indexed < estimate.on_disk) {
    const double used =
        static_cast<double>(estimate.indexed) / static_cast<double>(estimate.on_disk);
    report.note("cache.memory is too small for the index of the disks: at a mean of " + mean +
                " an object (cache.mean_object) " + percent(used) +
                " of them are used. Recommended: a cache.memory of " +
                format_bytes(cache::kDiskIndexShare * estimate.index_bytes) + " or more.");
  }
}

std::string seed_text(const Config& config) {
  if (const auto& seed = *config.admission.seed) {
    return "configured, fingerprint " + filter::fingerprint(*seed);
  }
  if (config.state.directory.empty()) {
    return config.disk.empty() ? "random, new at every start (no state.directory)"
                               : "random, kept on the disks (no state.directory)";
  }
  return "random, kept in " + config.state.directory;
}

std::string window_text(const Config& config, const FilterPlan& plan) {
  const std::uint64_t least = plan.capacity;
  std::string text = "a key for at least " + std::to_string(least) + " and at most " +
                     std::to_string(2 * least) + " later insertions";
  const Nanoseconds rotate_after = config.admission.rotate_after;
  if (rotate_after > Nanoseconds(0)) {
    text += ", or " + format_duration(rotate_after) + " to " + format_duration(2 * rotate_after) +
            " if that is sooner";
  }
  return text;
}

// Why the capacity is what it is, where it follows from the disks.
std::string derived_text(const Config& config) {
  const Admission& admission = config.admission;
  if (admission.capacity != 0 || admission.bits != 0 || !window_of(config).follows) return {};
  if (admission.policy == Policy::kProbation) return ", two for each 8KiB of the disks";
  return ", for " + std::to_string(estimate_objects(config).held()) +
         " objects in memory and on disk";
}

void report_window(const Config& config, std::uint64_t capacity, Report& report) {
  const Window window = window_of(config);
  const std::string kept = std::to_string(estimate_objects(config).held()) +
                           " objects that the cache can hold at a mean of " +
                           format_bytes(config.cache.mean_object_bytes) + " (cache.mean_object)";
  const std::string begin = "the window of " + std::to_string(capacity) + " insertions is ";
  const std::string remedy =
      " Recommended: an admission.capacity of " + std::to_string(window.recommended) + ".";
  if (capacity < window.least) {
    report.note(begin + "short for the " + kept +
                ": keys expire while their objects are cached, so that a second request counts as "
                "the first." +
                remedy);
  } else if (window.most != 0 && capacity > window.most) {
    report.note(begin + "long for the " + kept +
                ": objects requested again after that long are written to disk, and leave it "
                "before the next request." +
                remedy);
  }
}

// The smallest filter with the plan's window for a worst rate.
filter::Sizing sized_for(const FilterPlan& plan, const Admission& admission, double fpr) {
  const filter::Sizing shard =
      filter::size_ring({.layout = admission.layout,
                         .capacity = static_cast<double>(plan.shard.capacity),
                         .fpr_worst = fpr,
                         .generations = 2,
                         .hashes = 0,
                         .refresh = admission.refresh});
  filter::Sizing all = shard;
  all.bits *= plan.shards;
  return all;
}

// A size that the configuration states follows no rate: one far from 1 % is reported, with the size
// to take, and so is a number of hashes that doubles the lowest rate or the bits.
void report_size(const Config& config, const FilterPlan& plan, Report& report) {
  constexpr double kHighFpr = 0.25;
  constexpr double kTimes = 8;
  constexpr double kFarFromBest = 2;
  const Admission& admission = config.admission;
  const double usual_fpr = Admission{}.fpr;
  const auto recommended = [&](const filter::Sizing& sizing) {
    return " Recommended: admission.bits of " + std::to_string(sizing.bits) +
           " and admission.hashes of " + std::to_string(sizing.hashes) + ".";
  };
  const std::string keys = " for a window of " + std::to_string(plan.capacity) + " insertions";
  if (admission.bits != 0) {
    const filter::Sizing usual = sized_for(plan, admission, usual_fpr);
    const double times = static_cast<double>(plan.bits) / static_cast<double>(usual.bits);
    if (usual.reached && plan.fpr.high > kHighFpr) {
      report.note("admission.bits of " + std::to_string(plan.bits) + " are few" + keys +
                  ": up to " + percent(plan.fpr.high) + " of all first requests are admitted." +
                  recommended(usual));
      return;
    }
    if (usual.reached && times >= kTimes) {
      report.note("admission.bits of " + std::to_string(plan.bits) + " are " +
                  plain_number(times, 3) + " times what a rate of " + percent(usual_fpr) +
                  " takes" + keys + "." + recommended(usual));
      return;
    }
  }
  const bool lines =
      admission.layout == filter::Layout::kBlocked || admission.layout == filter::Layout::kSplit;
  if (admission.hashes == 0 || lines || plan.fpr.high <= 0 || plan.fpr.high >= 1) return;
  const filter::Sizing same = sized_for(plan, admission, plan.fpr.high);
  if (same.reached && same.hashes <= kConfiguredHashesMax &&
      static_cast<double>(plan.bits) >= kFarFromBest * static_cast<double>(same.bits)) {
    report.note("admission.hashes of " + std::to_string(plan.shard.hashes) + " take " +
                std::to_string(plan.bits) + " bits for a rate of " + percent(plan.fpr.high) + keys +
                ", the best number " + std::to_string(same.bits) + "." + recommended(same));
  }
}

void report_filter(const Config& config, const FilterPlan& plan, Report& report) {
  const auto& shard = plan.shard;
  const double bits = static_cast<double>(plan.bits);
  const double capacity = static_cast<double>(plan.capacity);
  report.line("layout", std::string(to_string(shard.layout)) + ", hash " +
                            std::string(to_string(shard.hash)));
  report.line("m", std::to_string(plan.bits) + " bits a generation (" + std::to_string(shard.bits) +
                       " a shard), " + two_decimals(bits / capacity) + " a key");
  report.line("k", std::to_string(shard.hashes));
  report.line("capacity", std::to_string(plan.capacity) + " insertions a generation (" +
                              std::to_string(shard.capacity) + " a shard)" + derived_text(config));
  report.line("bytes", std::to_string(plan.memory_bytes) + " (" + format_bytes(plan.memory_bytes) +
                           ") for both generations of all shards");
  report.line("fpr over a cycle", "low " + percent(plan.fpr.low) + ", mean " +
                                      percent(plan.fpr.mean) + ", high " + percent(plan.fpr.high));
  report.line("remembered", window_text(config, plan));
  report.line("seed", seed_text(config));
  if (shard.hash != filter::HashFamily::kSiphash) {
    report.note(
        "the secret seed protects against collisions crafted offline, but not cryptographically; "
        "admission.hash = \"siphash\" does.");
  }
  report_size(config, plan, report);
}

void report_threshold(const Config& config, Report& report) {
  const std::uint64_t threshold = config.admission.size_threshold_bytes;
  report.line("admitted",
              "up to " + format_bytes(threshold) + " (" + std::to_string(threshold) + " bytes)");
  if (threshold > max_object_in_memory(config)) {
    report.note("admission.size_threshold has no effect: max_object is smaller.");
  }
}

void report_admission(const Config& config, Report& report) {
  const Admission& admission = config.admission;
  report.line("admission", choice_text("admission", "policy", &admission));
  const auto plan = derive_filter(config);
  const std::uint64_t capacity = plan ? plan->capacity : admission.capacity;
  if (admission.policy == Policy::kNthHit) {
    report.line("admitted", "at request " + std::to_string(admission.min_requests) +
                                ", each earlier one is an insertion");
  }
  if (cache::has_filter(admission.policy) && plan) {
    report_filter(config, *plan, report);
  }
  switch (admission.policy) {
    case Policy::kProbation:
      report.line("written",
                  std::string("objects requested again after they left the memory") +
                      (admission.fill ? "; all objects until a disk was full once" : ""));
      report.line("write cost", plain_number(admission.write_cost, 4) +
                                    " of a byte fetched; samples choose the window");
      break;
    case Policy::kExactSecondHit:
      report.line("capacity", std::to_string(capacity) +
                                  " keys a generation, kept exactly; no filter" +
                                  derived_text(config));
      break;
    case Policy::kProbability:
      report.line("admitted", "each request with probability " +
                                  plain_number(admission.probability, 6) + ", after " +
                                  plain_number(1 / admission.probability, 4) + " on average");
      break;
    case Policy::kSizeThreshold:
      report_threshold(config, report);
      break;
    case Policy::kTinyLfu:
      report.line("window",
                  std::to_string(capacity) +
                      " requests, then all counts are halved and the doorkeeper is empty");
      report.line("doorkeeper", std::to_string(plan ? plan->bits : 0) + " bits");
      break;
    case Policy::kAdaptSize:
      report.line("tuning",
                  "every " + std::to_string(capacity) + " requests, from c = 32KiB at first");
      break;
    default:
      break;
  }
  report_window(config, capacity, report);
}

void report_filters(const Config& config, Report& report) {
  const Filters& filters = config.filters;
  const auto text = [](const filter::FilterParameters& made) {
    return std::to_string(made.bits) + " bits, k " + std::to_string(made.hashes);
  };
  if (const auto made = derive_changed_filter(filters);
      made && publishes(filters, kPublishChanged)) {
    const std::uint32_t hours = hours_kept(filters);
    const std::uint64_t bytes = (made->bits + 7) / 8;
    report.line("changes", plural(hours, "hour") + " and the current one, each " + text(*made) +
                               ", " + format_bytes(bytes) + " for hours with changes: at most " +
                               format_bytes(bytes * (hours + 1)));
  }
  if (const auto made = derive_resident_filter(config);
      made && publishes(filters, kPublishResident)) {
    // Four bits for each, and as many for each of the digest's five an entry.
    const std::uint64_t bytes = (made->bits + 5 * made->capacity) / 2;
    report.line("resident", std::to_string(made->capacity) + " responses, " + text(*made) +
                                ", with Squid's digest " + format_bytes(bytes));
  }
}

}  // namespace

namespace {

void report_shadow(const Config& config, Report& report) {
  const Shadow& shadow = config.shadow;
  if (shadow.policies.empty()) return;
  const std::uint64_t whole =
      shadow.cache_bytes == 0 ? config.cache.memory_bytes : shadow.cache_bytes;
  report.line("shadow", plural(shadow.policies.size(), "simulated cache") + " on 1 key in " +
                            std::to_string(shadow.sample) + ", of a cache of " +
                            format_bytes(whole) + "; up to about " +
                            format_bytes(shadow_bytes(config)) + " of memory in all");
  // With fewer objects, one that is requested often decides much of the result.
  constexpr std::uint64_t kFew = 64;
  const std::uint64_t held =
      whole / shadow.sample / std::max<std::uint64_t>(config.cache.mean_object_bytes, 1);
  if (held < kFew) {
    report.note("the sample's caches hold about " + std::to_string(held) +
                " objects of cache.mean_object each: with fewer than 64 the results are "
                "unreliable; lower shadow.sample.");
  }
}

// The password is in neither text.
void report_fleet(const Config& config, Report& report) {
  const Fleet& fleet = config.fleet;
  if (!*fleet.purges) {
    for (const auto& [name, value] :
         {std::pair("password_file", fleet.password_file), std::pair("node", fleet.node)}) {
      if (value.empty()) continue;
      report.note("fleet." + std::string(name) + " has no effect: fleet.purges is empty.");
    }
    return;
  }
  const RedisUrl& engine = **fleet.purges;
  report.line("fleet", "node " + (fleet.node.empty() ? "by the host name" : fleet.node) +
                           ", purges by " + shown(engine) + ", stream " + engine.stream);
  if (!fleet.password_file.empty() && !engine.password.empty()) {
    report.note("the password in fleet.purges has no effect: fleet.password_file is set.");
  }
}

}  // namespace

std::string check_report(const Config& config, std::uint32_t cores) {
  Report report;
  report_listeners(config, report);
  report_rules(config, report);
  report_intercept(config, report);
  report_cache(config, cores, report);
  report_compression(config, report);
  report_disks(config, report);
  report_admission(config, report);
  report_filters(config, report);
  report_shadow(config, report);
  report_fleet(config, report);
  return std::move(report).text();
}

}  // namespace encore::config

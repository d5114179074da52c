#include "proxy/observe/carried_counts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <string>

namespace encore::server {
namespace {

constexpr std::size_t kNumbersMax = 1024;  // a counter's
constexpr double kNanosecondsOfSecond = 1e9;

// Calls `visit` with the name of each counter and its numbers.
template <typename Visit>
class Visitor {
 public:
  explicit Visitor(Visit visit) : visit_(std::move(visit)) {}

  void all(Snapshot& snapshot) {
    requests(snapshot);
    counters(snapshot);
    kernel(snapshot);
    disks(snapshot);
    series(snapshot);
  }

 private:
  void one(const std::string& name, std::uint64_t& value) { visit_(name, std::span(&value, 1)); }
  template <typename Numbers>
  void many(const std::string& name, Numbers& values) {
    visit_(name, std::span<std::uint64_t>(values));
  }
  template <typename Histogram>
  void histogram(const std::string& name, Histogram& found) {
    many(name + ".buckets", found.buckets);
    one(name + ".count", found.count);
    one(name + ".sum", found.sum);
  }

  void requests(Snapshot& snapshot) {
    for (std::size_t i = 0; i < kOutcomeCount; ++i) {
      one("requests." + std::string(kOutcomeNames[i]), snapshot.requests[i]);
    }
    for (std::size_t i = 0; i < kOutcomeClassCount; ++i) {
      const std::string group(kOutcomeClassNames[i]);
      LatencySnapshot& latency = snapshot.latency[i];
      many("latency." + group + ".buckets", latency.buckets);
      one("latency." + group + ".count", latency.count);
      auto nanoseconds =
          static_cast<std::uint64_t>(std::llround(latency.sum_seconds * kNanosecondsOfSecond));
      one("latency." + group + ".nanoseconds", nanoseconds);
      latency.sum_seconds = static_cast<double>(nanoseconds) / kNanosecondsOfSecond;
      many("sizes." + group + ".buckets", snapshot.sizes[i].buckets);
      one("sizes." + group + ".sum", snapshot.sizes[i].sum);
    }
    histogram("stored_sizes", snapshot.stored_sizes);
    histogram("evicted_ages", snapshot.evicted_ages);
  }

  void counters(Snapshot& snapshot) {
#define ENCORE_VISIT(member, name, help) one(#member, snapshot.member);
    ENCORE_COUNTERS(ENCORE_VISIT)
    ENCORE_BODY_COUNTERS(ENCORE_VISIT)
#undef ENCORE_VISIT
    for (auto& [name, counts] :
         {std::pair("http2", &snapshot.http2), std::pair("origin_http2", &snapshot.origin_http2)}) {
      many(std::string(name) + ".floods", counts->floods);
      many(std::string(name) + ".limits", counts->limits);
      many(std::string(name) + ".malformed", counts->malformed);
    }
  }

  void kernel(Snapshot& snapshot) {
    cache::KernelCounters& kernel = snapshot.kernel.counters;
#define ENCORE_VISIT(member, meaning) one("kernel." #member, kernel.member);
    ENCORE_KERNEL_COUNTERS(ENCORE_VISIT)
#undef ENCORE_VISIT
    many("kernel.admissions", kernel.admissions);
  }

  void disks(Snapshot& snapshot) {
    cache::DiskCounters& disk = snapshot.kernel.disk.counters;
#define ENCORE_VISIT(member, meaning) one("disk." #member, disk.member);
    ENCORE_DISK_COUNTERS(ENCORE_VISIT)
#undef ENCORE_VISIT
    many("disk.outcomes", disk.outcomes);
    many("disk.losses", disk.losses);
    many("disk.part_outcomes", disk.part_outcomes);
    many("disk.part_losses", disk.part_losses);
    for (disk::DiskReport& device : snapshot.devices) {
      const std::string prefix = "device." + device.path + ".";
      one(prefix + "admit_bytes", device.admit_bytes);
      one(prefix + "move_bytes", device.move_bytes);
      one(prefix + "format_bytes", device.format_bytes);
      one(prefix + "read_bytes", device.read_bytes);
      one(prefix + "reads", device.reads);
      one(prefix + "read_errors", device.read_errors);
      one(prefix + "write_errors", device.write_errors);
      one(prefix + "write_pauses", device.write_pauses);
      one(prefix + "failed_records", device.failed_records);
      one(prefix + "damaged_records", device.damaged_records);
    }
  }

  void series(Snapshot& snapshot) {
    for (ListenerReport& listener : snapshot.series.listeners) {
      const std::string prefix = "listener." + listener.name + ".";
      many(prefix + "requests", listener.requests);
      one(prefix + "sent_bytes", listener.sent_bytes);
      one(prefix + "received_bytes", listener.received_bytes);
      one(prefix + "accepted", listener.accepted);
    }
    for (RuleReport& rule : snapshot.series.rules) {
      const std::string prefix = "rule." + rule.name + ".";
      many(prefix + "requests", rule.requests);
      one(prefix + "responses", rule.responses);
    }
  }

  Visit visit_;
};

template <typename Visit>
void visit_counts(Snapshot& snapshot, Visit visit) {
  Visitor<Visit>(std::move(visit)).all(snapshot);
}

}  // namespace

CountTable counts_of(const Snapshot& snapshot) {
  CountTable counts;
  Snapshot copy = snapshot;
  visit_counts(copy, [&counts](const std::string& name, std::span<const std::uint64_t> numbers) {
    counts[name].assign(numbers.begin(), numbers.end());
  });
  return counts;
}

CountTable difference(const CountTable& later, const CountTable& earlier) {
  CountTable counts = later;
  for (auto& [name, numbers] : counts) {
    const auto before = earlier.find(name);
    if (before == earlier.end()) continue;
    const std::size_t both = std::min(numbers.size(), before->second.size());
    for (std::size_t i = 0; i < both; ++i) {
      numbers[i] -= std::min(numbers[i], before->second[i]);
    }
  }
  return counts;
}

std::string to_text(const CountTable& counts) {
  std::string text;
  for (const auto& [name, numbers] : counts) {
    const auto is_zero = [](std::uint64_t number) { return number == 0; };
    if (std::ranges::all_of(numbers, is_zero) || name.find_first_of("\t\n") != std::string::npos) {
      continue;
    }
    text += name;
    for (const std::uint64_t number : numbers) text += '\t' + std::to_string(number);
    text += '\n';
  }
  return text;
}

Result<CountTable> parse_counts(std::string_view text) {
  if (text.size() > kCountsBytesMax) return fail("counters that were handed over are too many");
  CountTable counts;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return fail("counters that were handed over end in a line");
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::size_t name_end = line.find('\t');
    if (name_end == std::string_view::npos || name_end == 0) {
      return fail("a counter that was handed over has no number");
    }
    std::vector<std::uint64_t>& numbers = counts[std::string(line.substr(0, name_end))];
    line.remove_prefix(name_end);
    while (!line.empty()) {
      line.remove_prefix(1);
      std::uint64_t number = 0;
      const auto [stop, status] = std::from_chars(line.data(), line.data() + line.size(), number);
      const bool is_whole = stop == line.data() + line.size() || *stop == '\t';
      if (status != std::errc{} || !is_whole || numbers.size() == kNumbersMax) {
        return fail("a counter that was handed over is no number");
      }
      numbers.push_back(number);
      line.remove_prefix(static_cast<std::size_t>(stop - line.data()));
    }
  }
  return counts;
}

void CarriedCounts::add(const CountTable& counts) {
  const MutexLock lock(mutex_);
  for (const auto& [name, numbers] : counts) {
    std::vector<std::uint64_t>& sum = counts_[name];
    sum.resize(std::max(sum.size(), numbers.size()));
    for (std::size_t i = 0; i < numbers.size(); ++i) sum[i] += numbers[i];
  }
}

void CarriedCounts::add_to(Snapshot& snapshot) const {
  const MutexLock lock(mutex_);
  if (counts_.empty()) return;
  visit_counts(snapshot, [this](const std::string& name,
                                std::span<std::uint64_t> numbers) ENCORE_NO_THREAD_SAFETY_ANALYSIS {
    const auto found = counts_.find(name);
    if (found == counts_.end()) return;
    const std::size_t both = std::min(numbers.size(), found->second.size());
    for (std::size_t i = 0; i < both; ++i) numbers[i] += found->second[i];
  });
}

}  // namespace encore::server

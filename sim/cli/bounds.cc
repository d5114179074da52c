#include "sim/cli/bounds.h"

#include <array>
#include <set>
#include <string>

#include "base/cli/lists.h"
#include "sim/cli/memory_need.h"

namespace encore::sim {
namespace {

constexpr std::string_view kLowerName = "pfoo-l";
constexpr std::string_view kUpperName = "pfoo-u";
constexpr std::string_view kAllName = "all";
// An interval, its number in the order of prices, and the occupancy of a moment.
constexpr double kUpperBytesARequest = sizeof(ReuseInterval) + 4 + 8;
constexpr std::array kGoals = {BoundGoal::kObjects, BoundGoal::kBytes};

// Results of one pass over the trace for one size of cache.
struct Pass {
  ReuseFinder finder;
  std::array<PfooLower, kGoals.size()> lower = {PfooLower(kGoals[0]), PfooLower(kGoals[1])};
  std::vector<ReuseInterval> intervals;  // for PFOO-U alone
};

Result<void> read_intervals(const LoadedTrace& trace, const BoundsWanted& wanted, Pass& pass,
                            Monitor& monitor) {
  SpoolReader reader(trace.requests, trace.objects);
  auto part = reader.read();
  for (; part && !part->empty(); part = reader.read()) {
    for (const ReplayRequest& request : *part) {
      const std::optional<ReuseInterval> interval = pass.finder.next(request);
      if (!interval) {
        continue;
      }
      for (PfooLower& lower : pass.lower) {
        lower.add(*interval);
      }
      if (wanted.upper) {
        pass.intervals.push_back(*interval);
      }
    }
    if (!monitor.advance(part->size())) {
      return {};
    }
  }
  return part ? Result<void>{} : std::unexpected(part.error());
}

std::optional<double> miss_ratio(std::uint64_t gives, std::uint64_t of) {
  return of == 0 ? std::optional<double>{}
                 : static_cast<double>(of - gives) / static_cast<double>(of);
}

}  // namespace

Result<BoundsWanted> parse_bounds(std::string_view text) {
  BoundsWanted wanted;
  if (text.empty()) {
    return wanted;
  }
  const auto words = parse_words("--bounds", std::string(text));
  if (!words) {
    return std::unexpected(words.error());
  }
  for (const std::string& word : *words) {
    if (word != kLowerName && word != kUpperName && word != kAllName) {
      return fail("--bounds \"" + word + "\", accepted: all, pfoo-l, pfoo-u");
    }
    wanted.lower = wanted.lower || word != kUpperName;
    wanted.upper = wanted.upper || word != kLowerName;
  }
  return wanted;
}

Result<std::vector<Bounds>> run_bounds(const LoadedTrace& trace,
                                       const std::vector<PlannedRun>& plan,
                                       const BoundsWanted& wanted, std::uint64_t first_counted,
                                       Monitor& monitor) {
  if (trace.requests.size() > ReuseFinder::kRequestsMax) {
    return fail("bounds of " + std::to_string(trace.requests.size()) +
                " requests, accepted: up to " + std::to_string(ReuseFinder::kRequestsMax));
  }
  if (wanted.upper) {
    const auto requests = static_cast<double>(trace.requests.size());
    if (auto fine = check_memory({.what = "PFOO-U of " + std::to_string(trace.requests.size()) +
                                          " requests (--bounds=pfoo-l needs none)",
                                  .bytes = kUpperBytesARequest * requests});
        !fine) {
      return std::unexpected(fine.error());
    }
  }
  std::vector<cache::KernelOptions> caches;
  std::set<std::uint64_t> sizes;
  for (const PlannedRun& planned : plan) {
    cache::KernelOptions cache = planned.options.kernel;
    cache.capacity_bytes = capacity_of(planned, trace.footprint_bytes());
    if (sizes.insert(cache.capacity_bytes).second) {
      caches.push_back(cache);
    }
  }
  monitor.begin("bounds",
                trace.requests.size() * caches.size() * (wanted.upper ? 1 + kGoals.size() : 1));
  std::uint64_t passes = 0;
  const auto end_pass = [&] {
    if (!monitor.stop) {
      monitor.done = ++passes * trace.requests.size();
    }
  };
  std::vector<Bounds> all;
  for (const cache::KernelOptions& cache : caches) {
    if (monitor.stopped()) {
      break;
    }
    Pass pass{.finder = ReuseFinder(cache, first_counted), .intervals = {}};
    if (wanted.upper) {
      pass.intervals.reserve(trace.requests.size());
    }
    if (auto read = read_intervals(trace, wanted, pass, monitor); !read) {
      return std::unexpected(read.error());
    }
    end_pass();
    for (std::size_t i = 0; i < kGoals.size(); ++i) {
      Bounds bounds{
          .cache_bytes = cache.capacity_bytes, .goal = kGoals[i], .lower = {}, .upper = {}};
      const std::uint64_t of = kGoals[i] == BoundGoal::kObjects ? pass.finder.counted_requests()
                                                                : pass.finder.counted_bytes();
      if (wanted.lower && !monitor.stopped()) {
        bounds.lower =
            miss_ratio(pass.lower[i].most(cache.capacity_bytes, pass.finder.moments()), of);
      }
      if (wanted.upper && !monitor.stopped()) {
        const std::uint64_t gives =
            pfoo_upper(pass.intervals, kGoals[i], cache.capacity_bytes, monitor);
        end_pass();
        bounds.upper = monitor.stopped() ? std::optional<double>{} : miss_ratio(gives, of);
      }
      // An interrupt leaves some without either.
      if (bounds.lower || bounds.upper || !monitor.heard) {
        all.push_back(bounds);
      }
    }
  }
  return all;
}

Table bounds_table(const std::vector<Bounds>& bounds, const BoundsWanted& wanted) {
  Table table{.key = "bounds",
              .title = "Bounds on the fewest misses of any policy (Berger et al. 2018)",
              .columns = {{"cache_bytes", "cache", Style::kBytes}, {"goal", "misses of"}},
              .rows = {}};
  if (wanted.lower) {
    table.columns.push_back({"pfoo_l", "PFOO-L", Style::kPercent});
  }
  if (wanted.upper) {
    table.columns.push_back({"pfoo_u", "PFOO-U", Style::kPercent});
  }
  const auto value = [](const std::optional<double>& ratio) {
    return ratio ? Value(*ratio) : Value{};
  };
  for (const Bounds& one : bounds) {
    table.rows.push_back(
        {{"cache_bytes", one.cache_bytes},
         {"goal", std::string(one.goal == BoundGoal::kObjects ? "objects" : "bytes")},
         {"pfoo_l", value(one.lower)},
         {"pfoo_u", value(one.upper)}});
  }
  return table;
}

std::vector<std::string> bounds_notes(const LoadedTrace& trace, const BoundsWanted& wanted) {
  std::vector<std::string> notes;
  if (wanted.lower) {
    notes.emplace_back("PFOO-L: no policy has a lower miss ratio, whatever it knows or admits.");
  }
  if (wanted.upper) {
    notes.emplace_back("PFOO-U: a policy that knows the future can have this miss ratio.");
  }
  if (trace.with_ttl != 0) {
    notes.emplace_back("The bounds assume objects that never become stale, which these do.");
  }
  return notes;
}

}  // namespace encore::sim

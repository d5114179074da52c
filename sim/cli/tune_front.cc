#include "sim/cli/tune_front.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/units.h"
#include "sim/sweep/pareto.h"

namespace encore::sim {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kMillion = 1e6;
constexpr RealRange kMoney{.min = 0, .max = 1e12};

std::string short_text(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", number);
  return text.data();
}

std::vector<bool> front_of(const std::vector<Measured>& all) {
  std::vector<Goals> goals;
  for (const Measured& one : all) {
    goals.push_back({one.hits, one.byte_hits, -static_cast<double>(one.bytes_written),
                     -static_cast<double>(one.filter_bytes)});
  }
  return pareto_front(goals);
}

double cost_of_part(const Measured::Part& part, const Costs& costs) {
  return costs.miss * part.misses / kMillion + costs.origin * part.bytes_from_origin / kGiB +
         costs.write * part.bytes_written / kGiB;
}

// The chosen one's cost less the other's.
Estimate cost_difference(const Measured& chosen, const Measured& other, const Costs& costs) {
  const double value = cost_of(chosen, costs) - cost_of(other, costs);
  const std::size_t parts = std::min(chosen.parts.size(), other.parts.size());
  std::vector<double> moved;
  double sum = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    moved.push_back(cost_of_part(chosen.parts[i], costs) - cost_of_part(other.parts[i], costs));
    sum += moved.back();
  }
  for (double& each : moved) each -= sum / static_cast<double>(parts);
  return estimate_by_parts(value, moved);
}

std::string sure_text(double certainty) {
  return certainty >= 0.9995 ? "more than 99.9 %" : percent_text(certainty);
}

std::string more_or_fewer(double difference) { return difference < 0 ? " fewer" : " more"; }

}  // namespace

void Costs::declare(Arguments& a) {
  a.real("--cost-miss", miss, "money per million misses; with any --cost the cheapest is chosen",
         kMoney);
  a.real("--cost-origin", origin, "money per GiB from the origin", kMoney);
  a.real("--cost-write", write, "money per GiB written", kMoney);
  a.real("--cost-memory", memory,
         "money per GiB of the filter's memory, for as long as the trace takes", kMoney);
}

void Costs::append_parameters(Row& row) const {
  if (!any()) return;
  row.insert(row.end(), {Field{"cost_miss", miss},
                         {"cost_origin", origin},
                         {"cost_write", write},
                         {"cost_memory", memory}});
}

double cost_of(const Measured& one, const Costs& costs) {
  return costs.miss * static_cast<double>(one.misses) / kMillion +
         costs.origin * static_cast<double>(one.bytes_from_origin) / kGiB +
         costs.write * static_cast<double>(one.bytes_written) / kGiB +
         costs.memory * static_cast<double>(one.filter_bytes) / kGiB;
}

std::size_t cheapest(const std::vector<Measured>& all, const Costs& costs) {
  const auto at =
      std::ranges::min_element(all, {}, [&](const Measured& one) { return cost_of(one, costs); });
  return static_cast<std::size_t>(at - all.begin());
}

std::string name_of(const Measured& one) {
  std::string name(to_string(one.policy));
  if (one.policy == cache::AdmissionPolicy::kProbation) {
    return name + " at a write cost of " + short_text(one.write_cost);
  }
  if (one.policy != cache::AdmissionPolicy::kAlways) {
    name += " of " + std::to_string(one.window) + " insertions";
  }
  return one.fpr > 0 ? name + " at an FPR of " + short_text(one.fpr) : name;
}

Table front_table(const std::vector<Measured>& all, const Costs& costs, std::size_t chosen,
                  std::size_t runner_up) {
  Table table{.key = "front",
              .title =
                  "Pareto front: nothing beats these in hits, byte hits, bytes written and "
                  "memory together",
              .columns = {{"setting", "setting"},
                          {"object_hit_ratio", "hits", Style::kPercent},
                          {"byte_hit_ratio", "of bytes", Style::kPercent},
                          {"bytes_written", "written", Style::kBytes},
                          {"filter_bytes", "filter", Style::kBytes}},
              .rows = {}};
  if (costs.any()) table.columns.push_back({"cost", "cost", Style::kRate});
  table.columns.push_back({"choice", "choice"});
  const std::vector<bool> on_front = front_of(all);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (on_front[i] || i == chosen || i == runner_up) order.push_back(i);
  }
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return all[a].hits > all[b].hits; });
  for (const std::size_t i : order) {
    table.rows.push_back({{"setting", name_of(all[i])},
                          {"object_hit_ratio", all[i].hits},
                          {"byte_hit_ratio", all[i].byte_hits},
                          {"bytes_written", all[i].bytes_written},
                          {"filter_bytes", all[i].filter_bytes},
                          {"cost", costs.any() ? Value{cost_of(all[i], costs)} : Value{}},
                          {"pareto", static_cast<bool>(on_front[i])},
                          {"choice", std::string(i == chosen      ? "chosen"
                                                 : i == runner_up ? "runner-up"
                                                                  : "")}});
  }
  return table;
}

Chart front_chart(const std::vector<Measured>& all, std::size_t chosen) {
  const std::vector<bool> on_front = front_of(all);
  Series front{.name = "on the front", .line = false, .points = {}};
  Series others{.name = "others", .line = false, .points = {}};
  Series choice{.name = "chosen", .line = false, .points = {}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    Series& series = i == chosen ? choice : on_front[i] ? front : others;
    series.points.push_back({.x = all[i].hits, .y = static_cast<double>(all[i].bytes_written)});
  }
  return {.title = "Pareto front: bytes written against hits",
          .x_label = "object hit ratio",
          .y_label = "bytes written",
          .series = {std::move(front), std::move(others), std::move(choice)}};
}

std::vector<std::string> reasons(const Measured& chosen, const Measured& runner_up,
                                 const Costs& costs) {
  const Balance balance = balance_of(runner_up, chosen);
  const double hits = -balance.lost.value;
  const double written = -balance.saved.value;
  const std::string memory = chosen.filter_bytes == runner_up.filter_bytes
                                 ? std::string()
                                 : ", with a filter of " + format_bytes(chosen.filter_bytes) +
                                       " instead of " + format_bytes(runner_up.filter_bytes);
  std::string why = "Chosen: " + name_of(chosen) + "; runner-up: " + name_of(runner_up) +
                    ". The chosen one has hits for " + percent_text(std::abs(hits)) +
                    more_or_fewer(hits) + " of the requests, and writes " +
                    percent_text(std::abs(written)) + more_or_fewer(written) + " bytes" + memory +
                    ".";
  if (!costs.any()) {
    return {why, "How sure: the difference in hits has this sign with a probability of " +
                     sure_text(balance.lost.certainty) + ", that in bytes written of " +
                     sure_text(balance.saved.certainty) + "."};
  }
  const Estimate cost = cost_difference(chosen, runner_up, costs);
  return {why, "It costs " + short_text(cost_of(chosen, costs)) + " instead of " +
                   short_text(cost_of(runner_up, costs)) +
                   ", and is cheaper with a probability of " + sure_text(cost.certainty) + "."};
}

}  // namespace encore::sim

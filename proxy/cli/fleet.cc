// encore fleet.
#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "base/readable.h"
#include "proxy/cli/columns.h"
#include "proxy/cli/session.h"

namespace encore::cli {
namespace {

using NodeJson = nlohmann::ordered_json;

// A ratio in percent, or "-" if there is none.
std::string ratio_of(const NodeJson& node, const char* name) {
  constexpr double kWhole = 100;
  if (!node.contains(name) || !node[name].is_number()) return "-";
  return fmt::format("{:.1f} %", node[name].get<double>() * kWhole);
}

std::string seconds_of(const NodeJson& node, const char* name) {
  const double seconds =
      node.contains(name) && node[name].is_number() ? node[name].get<double>() : 0;
  return about_duration(std::chrono::seconds(static_cast<std::int64_t>(seconds)));
}

// A line of the filter that the node adopted; empty: it is not to adopt one.
std::string filter_text(const NodeJson& filter) {
  const std::string state = filter.value("state", std::string("off"));
  if (state == "off") return {};
  if (state == "own") return "filter  its own since the start\n";
  if (state == "wanted") return "filter  looks for a node that gives one\n";
  if (state != "adopted")
    return "filter  none adopted: " + filter.value("note", std::string()) + "\n";
  return fmt::format("filter  adopted from {} at {}, {} insertions\n",
                     filter.value("from", std::string()), filter.value("adopted", std::string()),
                     filter.value("insertions", std::uint64_t{0}));
}

std::string fleet_text(const NodeJson& fleet) {
  const NodeJson engine = fleet.value("engine", NodeJson::object());
  const std::string fault = engine.value("fault", std::string());
  std::string text = "engine  " + engine.value("url", std::string()) + ", " +
                     (fault.empty() ? "connected" : "not connected: " + fault) + "\n";
  if (engine.value("late", false)) {
    text += "purges  late: " + seconds_of(engine, "lag_seconds") + "\n";
  }
  for (const NodeJson& warning : fleet.value("warnings", NodeJson::array())) {
    if (warning.is_string()) text += "warning " + warning.get<std::string>() + "\n";
  }
  text += filter_text(fleet.value("filter", NodeJson::object()));
  std::vector<std::vector<std::string>> rows = {
      {"node", "state", "version", "config", "hit ratio", "purge lag", "filter fill", "seen"}};
  for (const NodeJson& node : fleet.value("nodes", NodeJson::array())) {
    if (!node.is_object()) continue;
    const char* const state = node.value("here", false)      ? "here"
                              : node.value("present", false) ? "present"
                                                             : "gone";
    rows.push_back({node.value("node", std::string()), state, node.value("version", std::string()),
                    node.value("config", std::string()), ratio_of(node, "hit_ratio"),
                    seconds_of(node, "lag_seconds"), ratio_of(node, "filter_fill"),
                    seconds_of(node, "seen_seconds") + " ago"});
  }
  return printable_lines(text) + columns(rows);
}

}  // namespace

Exit run_fleet(Session& session) {
  const auto answer = session.ask({.target = "/fleet"});
  if (!answer) return session.fail_with(answer.error());
  const NodeJson fleet = NodeJson::parse(*answer, nullptr, false);
  const bool json = session.wants_json() || !fleet.is_object();
  session.out() << (json ? *answer : fleet_text(fleet));
  return Exit::kDone;
}

}  // namespace encore::cli

// encore top.
#include "proxy/cli/top.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <thread>
#include <vector>

#include "base/readable.h"
#include "proxy/cli/columns.h"
#include "proxy/cli/session.h"

namespace encore::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPercent = 100;

double number_at(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  return json.contains(at) && json[at].is_number() ? json[at].get<double>() : 0;
}

std::string word_at(const Json& json, const char* name) {
  return printable(json.value(name, std::string("?")));
}

std::string percent(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  if (!json.contains(at) || !json[at].is_number()) return "-";
  return fmt::format("{:.1f} %", json[at].get<double>() * kPercent);
}

std::string quantiles(const Json& json, const std::string& group) {
  const std::string base = "/rates/latency_seconds/" + group;
  const Json::json_pointer at(base);
  if (!json.contains(at) || !json[at].is_object()) return "-";
  std::string text;
  for (const char* const name : {"p50", "p90", "p99"}) {
    text += (text.empty() ? "" : ", ") + std::string(name) + " " +
            short_seconds(number_at(json, (base + "/" + name).c_str()));
  }
  return text;
}

std::string head(const Json& json) {
  const auto rate = [&](const char* group) {
    return number_at(json, (std::string("/rates/requests_per_second/") + group).c_str());
  };
  const double all = rate("hit") + rate("miss") + rate("pass") + rate("error");
  const auto uptime =
      std::chrono::seconds(static_cast<std::int64_t>(number_at(json, "/uptime_seconds")));
  return fmt::format(
      "encore {} on {}   {}, up {}\n"
      "requests  {}/s: hits {}, misses {}, passed {}, errors {}\n"
      "hit ratio {} of requests, {} of bytes   sent {}/s\n"
      "latency   hits {}; misses {}\n"
      "cache     {} of {}, {} responses   connections {} clients, {} origins\n",
      word_at(json, "version"), word_at(json, "name"), word_at(json, "state"),
      about_duration(uptime), short_number(all), short_number(rate("hit")),
      short_number(rate("miss")), short_number(rate("pass")), short_number(rate("error")),
      percent(json, "/rates/object_hit_ratio"), percent(json, "/rates/byte_hit_ratio"),
      short_bytes(number_at(json, "/rates/bytes_to_clients_per_second")), quantiles(json, "hit"),
      quantiles(json, "miss"), short_bytes(number_at(json, "/cache/used_bytes")),
      short_bytes(number_at(json, "/cache/capacity_bytes")),
      short_number(number_at(json, "/cache/objects")),
      short_number(number_at(json, "/connections/clients")),
      short_number(number_at(json, "/connections/origins")));
}

// A name with its weights a second; nothing of a kind: it is not among the first by that.
struct Row {
  double requests = -1;
  double bytes = -1;
};

// A weight that may be another's for the most part says nothing.
void add(std::map<std::string, Row>& rows, const Json& json, const std::string& list,
         const char* weight, double Row::* member) {
  const double seconds = std::max(1.0, number_at(json, "/names_seconds"));
  if (!json.contains(list) || !json[list].is_array()) return;
  for (const Json& each : json[list]) {
    const double whole = number_at(each, (std::string("/") + weight).c_str());
    if (2 * number_at(each, "/error") > whole || whole == 0) continue;
    rows[word_at(each, "name")].*member = whole / seconds;
  }
}

std::string table(const Json& json, const std::string& kind, std::size_t lines_max) {
  std::map<std::string, Row> rows;
  add(rows, json, kind + "s_by_requests", "requests", &Row::requests);
  add(rows, json, kind + "s_by_bytes", "bytes", &Row::bytes);
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) {
    return std::pair(a.second.requests, a.second.bytes) >
           std::pair(b.second.requests, b.second.bytes);
  });
  std::vector<std::vector<std::string>> cells = {{"top " + kind + "s", "requests/s", "bytes/s"}};
  for (const auto& [name, row] : sorted) {
    if (cells.size() >= lines_max) break;
    cells.push_back({name, row.requests < 0 ? "-" : short_number(row.requests),
                     row.bytes < 0 ? "-" : short_bytes(row.bytes)});
  }
  if (sorted.empty()) cells.push_back({"none", "-", "-"});
  return columns(cells);
}

std::size_t terminal_lines() {
  constexpr std::size_t kUsual = 24;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return kUsual;
  return size.ws_row;
}

// Draws over what stands there, so that nothing flickers.
std::string over_the_last(std::string_view screen) {
  constexpr std::string_view kClearLine = "\x1b[K\n";
  std::string out = "\x1b[H";
  for (const char c : screen) {
    if (c == '\n') {
      out += kClearLine;
    } else {
      out += c;
    }
  }
  return out + "\x1b[J";
}

}  // namespace

Result<std::string> top_screen(std::string_view text, std::size_t lines_max) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("rates")) return fail("the response is none of encore's");
  std::string screen = head(json);
  constexpr std::size_t kHeadLines = 5;
  constexpr std::size_t kBetween = 2;
  constexpr std::size_t kTableLinesMin = 3;
  const std::size_t left =
      lines_max > kHeadLines + kBetween ? lines_max - kHeadLines - kBetween : 0;
  const std::size_t each = std::max(left / 2, kTableLinesMin);
  return screen + "\n" + table(json, "host", each) + "\n" + table(json, "client", each);
}

Exit run_top(Session& session) {
  const auto interval = session.number("--interval", {.min = 1, .max = 3600});
  const auto names = session.number("--names", {.min = 1, .max = 64});
  const auto count = session.number("--count", {.min = 1});
  for (const auto* const each : {&interval, &names, &count}) {
    if (!*each) return session.fail_with(each->error());
  }
  const bool json = session.wants_json();
  const bool is_live = session.is_terminal() && !json;
  constexpr std::uint64_t kUsualSeconds = 2;
  constexpr std::uint64_t kUsualNames = 10;
  const std::uint64_t reports = count->value_or(session.is_terminal() ? UINT64_MAX : 1);
  const std::string target = "/api/top?count=" + std::to_string(names->value_or(kUsualNames));
  if (is_live) session.out() << "\x1b[2J";
  for (std::uint64_t i = 0; i < reports; ++i) {
    if (i != 0)
      std::this_thread::sleep_for(std::chrono::seconds(interval->value_or(kUsualSeconds)));
    const auto answer = session.ask({.target = target});
    if (!answer) return session.fail_with(answer.error());
    // Both tables, with some lines for their heads.
    const std::size_t lines = is_live
                                  ? terminal_lines() - 1
                                  : 2 * static_cast<std::size_t>(names->value_or(kUsualNames)) + 9;
    const auto screen = json ? Result<std::string>(*answer) : top_screen(*answer, lines);
    if (!screen) return session.fail_with({Exit::kRefused, screen.error().message});
    session.out() << (is_live ? over_the_last(*screen) : *screen) << std::flush;
    if (!session.out()) break;  // its reader has gone
  }
  return Exit::kDone;
}

}  // namespace encore::cli

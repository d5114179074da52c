// encore log.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "proxy/cli/columns.h"
#include "proxy/cli/session.h"
#include "proxy/observe/outcome.h"

namespace encore::cli {
namespace {

using Json = nlohmann::ordered_json;

// The proxy answers after ten seconds at the latest.
constexpr auto kWaitTime = std::chrono::seconds(30);

std::string word(const Json& record, const char* name) {
  const auto found = record.find(name);
  return found == record.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

double number(const Json& record, const char* name) {
  const auto found = record.find(name);
  return found == record.end() || !found->is_number() ? 0 : found->get<double>();
}

// "host[:port]" of a record: of its URL, or of the field.
std::string host_of(const Json& record) {
  const std::string url = word(record, "url");
  const std::size_t scheme = url.find("://");
  if (scheme == std::string::npos || url.starts_with('/')) return word(record, "host");
  const std::string rest = url.substr(scheme + 3);
  return rest.substr(0, rest.find_first_of("/?#"));
}

bool is_host(const std::string& named, const std::string& wanted) {
  return named == wanted || named.substr(0, named.rfind(':')) == wanted;
}

bool is_wanted(const Session& session, const Json& record) {
  const auto fits = [&](const char* option, auto&& holds) {
    const auto& wanted = session.texts(option);
    return wanted.empty() || std::ranges::any_of(wanted, holds);
  };
  return fits("--outcome", [&](const auto& each) { return word(record, "outcome") == each; }) &&
         fits("--client", [&](const auto& each) { return word(record, "client") == each; }) &&
         fits("--host", [&](const auto& each) { return is_host(host_of(record), each); });
}

// "12:57:36.964 10.0.0.7 hit 200 1.2KiB 0.31 ms GET http://..."
std::string line_of(const Json& record) {
  constexpr double kMicro = 1e-6;
  constexpr std::size_t kTimeBegin = 11;  // behind the date
  constexpr std::size_t kTimeBytes = 12;
  const std::string time = word(record, "time");
  std::string url = word(record, "url");
  if (url.starts_with('/')) url = word(record, "host") + url;
  const std::string detail = word(record, "detail");
  std::string line = time.size() > kTimeBegin ? time.substr(kTimeBegin, kTimeBytes) : time;
  line += " " + word(record, "client") + " " + word(record, "outcome");
  if (!detail.empty() && detail != word(record, "outcome")) line += "/" + detail;
  line += " " + short_number(number(record, "status")) + " " +
          short_bytes(number(record, "bytes")) + " " +
          short_seconds(number(record, "duration_us") * kMicro) + " " + word(record, "method") +
          " " + url;
  return printable(line);
}

std::optional<Failure> check_outcomes(const Session& session) {
  for (const std::string& name : session.texts("--outcome")) {
    if (std::ranges::find(server::kOutcomeNames, name) != server::kOutcomeNames.end()) continue;
    std::string accepted;
    for (const auto each : server::kOutcomeNames) accepted += " " + std::string(each);
    return Failure{Exit::kUsage, "--outcome \"" + name + "\" is none; accepted:" + accepted};
  }
  return std::nullopt;
}

// Prints the records that are wanted; how many.
std::uint64_t print(const Session& session, const Json& records, std::uint64_t most) {
  std::uint64_t printed = 0;
  for (const Json& record : records) {
    if (printed == most) break;
    if (!record.is_object() || !is_wanted(session, record)) continue;
    ++printed;
    session.out() << (session.wants_json()
                          ? record.dump(-1, ' ', false, Json::error_handler_t::replace)
                          : line_of(record))
                  << "\n";
  }
  session.out() << std::flush;
  return printed;
}

}  // namespace

Exit run_log(Session& session) {
  const auto count = session.number("--count", {.min = 1});
  if (!count) return session.fail_with(count.error());
  if (const auto wrong = check_outcomes(session)) return session.fail_with(*wrong);
  std::uint64_t left = count->value_or(UINT64_MAX);
  std::string target = "/api/log";
  while (left != 0 && session.out()) {
    const auto answer = session.ask({.target = target, .time_max = kWaitTime});
    if (!answer) return session.fail_with(answer.error());
    const Json json = Json::parse(*answer, nullptr, false);
    if (!json.is_object() || !json.contains("records")) {
      return session.fail_with({Exit::kRefused, "the response is none of encore's"});
    }
    if (const double dropped = number(json, "dropped"); dropped != 0) {
      session.err() << "encore log: " << short_number(dropped) << " records were dropped\n";
    }
    left -= print(session, json["records"], left);
    target = "/api/log?from=" + short_number(number(json, "next"));
  }
  return Exit::kDone;
}

}  // namespace encore::cli

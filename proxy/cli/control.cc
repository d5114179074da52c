// encore status, reload, drain and upgrade.
#include <chrono>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <thread>

#include "proxy/cli/columns.h"
#include "proxy/cli/session.h"

namespace encore::cli {
namespace {

using Json = nlohmann::ordered_json;

// A reload reads certificates, and resolves names.
constexpr auto kReloadTime = std::chrono::minutes(2);
// Used if upgrade.start is 0.
constexpr auto kUpgradeTimeMax = std::chrono::hours(24);

// Asks the proxy that drains until it is gone. False: it still answers after its time.
bool wait_for_end(Session& session, double seconds_max) {
  constexpr auto kPause = std::chrono::milliseconds(100);
  constexpr double kMargin = 30;
  const auto end = monotonic_now() + std::chrono::duration_cast<Nanoseconds>(
                                         std::chrono::duration<double>(seconds_max + kMargin));
  while (monotonic_now() < end) {
    const auto answer = session.ask({.target = "/healthz"});
    if (!answer && answer.error().exit == Exit::kUnreachable) return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

}  // namespace

Exit run_status(Session& session) {
  const bool json = session.wants_json();
  const auto text = session.ask({.target = json ? "/api/status?format=json" : "/api/status"});
  if (!text) return session.fail_with(text.error());
  session.out() << (json ? *text : printable_lines(*text));
  return Exit::kDone;
}

Exit run_reload(Session& session) {
  const auto done = session.ask({.method = "POST", .target = "/reload", .time_max = kReloadTime});
  if (!done) return session.fail_with(done.error());
  session.out() << (session.wants_json() ? *done : "reloaded\n");
  return Exit::kDone;
}

Exit run_drain(Session& session) {
  const auto done = session.ask({.method = "POST", .target = "/drain"});
  if (!done) return session.fail_with(done.error());
  const Json said = Json::parse(*done, nullptr, false);
  const double seconds = said.is_object() ? said.value("seconds_max", 0.0) : 0.0;
  if (session.has("--wait") && !wait_for_end(session, seconds)) {
    return session.fail_with({Exit::kRefused, "the proxy still answers"});
  }
  if (session.wants_json()) {
    session.out() << *done;
  } else if (session.has("--wait")) {
    session.out() << "ended\n";
  } else {
    session.out() << "draining: "
                  << (said.is_object() ? said.value("connections", std::uint64_t{0}) : 0)
                  << " client connections, at most " << short_number(seconds) << " s\n";
  }
  return Exit::kDone;
}

Exit run_upgrade(Session& session) {
  const auto config = session.config();
  if (!config) return session.fail_with(config.error());
  // Longer than the running process waits for the new one, which it then ends with a reason.
  constexpr auto kMargin = std::chrono::seconds(30);
  const Nanoseconds limit = config->upgrade.start;
  const Nanoseconds time_max = limit.count() == 0 ? Nanoseconds(kUpgradeTimeMax) : limit + kMargin;
  const auto done = session.ask({.method = "POST", .target = "/upgrade", .time_max = time_max});
  if (!done) return session.fail_with(done.error());
  if (session.wants_json()) {
    session.out() << *done;
    return Exit::kDone;
  }
  const Json said = Json::parse(*done, nullptr, false);
  session.out() << "process " << (said.is_object() ? said.value("process", std::int64_t{0}) : 0)
                << " serves\n";
  return Exit::kDone;
}

}  // namespace encore::cli

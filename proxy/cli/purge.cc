// encore purge.
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "proxy/cli/session.h"
#include "proxy/process/form.h"

namespace encore::cli {
namespace {

// All stored objects may be looked at.
constexpr auto kPurgeTime = std::chrono::minutes(10);

// The order as the admin listener reads it; empty: nothing is to be purged.
std::string order_of(const Session& session) {
  std::string form;
  for (const std::string& url : session.texts("URL")) server::append_form("url", url, form);
  for (const std::string& tag : session.texts("--tag")) server::append_form("tag", tag, form);
  for (const std::string& prefix : session.texts("--prefix")) {
    server::append_form("prefix", prefix, form);
  }
  if (session.has("--all")) server::append_form("all", "1", form);
  if (form.empty()) return form;
  if (session.has("--soft")) server::append_form("soft", "1", form);
  if (session.has("--dry-run")) server::append_form("dry_run", "1", form);
  return form;
}

std::string in_words(const nlohmann::json& purged, const Session& session) {
  const bool counted = session.has("--dry-run");
  const std::uint64_t count = purged.value(counted ? "would_purge" : "purged", std::uint64_t{0});
  std::string text = counted ? "would purge " : session.has("--soft") ? "made stale " : "purged ";
  text += std::to_string(count) + " response" + (count == 1 ? "" : "s");
  if (purged.contains("disk")) text += ", on disk " + purged.value("disk", std::string());
  if (!purged.contains("confirmed")) return printable(text) + "\n";
  text += " here";
  const auto names = [&purged](const char* list) {
    std::string joined;
    for (const auto& each : purged[list]) {
      joined += (joined.empty() ? "" : ", ") + (each.is_string() ? each.get<std::string>() : "?");
    }
    return joined;
  };
  text += "; confirmed by " + names("confirmed");
  const std::string missing = names("unconfirmed");
  if (!missing.empty()) text += "; not by " + missing;
  if (!purged.value("published", true)) text += "; it waits for the engine";
  return printable(text) + "\n";
}

}  // namespace

Exit run_purge(Session& session) {
  const std::string order = order_of(session);
  if (order.empty()) {
    return session.fail_with(
        {Exit::kUsage, "nothing to purge; accepted: URL, --tag TAG, --prefix URL or --all"});
  }
  const auto done =
      session.ask({.method = "POST", .target = "/purge", .content = order, .time_max = kPurgeTime});
  if (!done) return session.fail_with(done.error());
  const auto purged = nlohmann::json::parse(*done, nullptr, false);
  const bool json = session.wants_json() || !purged.is_object();
  session.out() << (json ? *done : in_words(purged, session));
  return Exit::kDone;
}

}  // namespace encore::cli

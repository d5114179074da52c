// encore explain, and encore intercept list and clear.
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "proxy/cli/session.h"
#include "proxy/process/explain.h"
#include "proxy/process/explain_page.h"
#include "proxy/process/form.h"

namespace encore::cli {
namespace {

server::Explained asked_by(const Session& session) {
  return {.url = session.text("URL"),
          .method = session.text("--method", "GET"),
          .client = session.text("--client", "127.0.0.1"),
          .listener = session.text("--listener"),
          .fields = session.texts("--field")};
}

Exit explain_offline(const Session& session, const server::Explained& asked) {
  const auto config = session.config();
  if (!config) return session.fail_with(config.error());
  const auto text = server::explain(*config, asked);
  if (!text) return session.fail_with({Exit::kUsage, text.error().message});
  if (session.has("--json")) {
    session.out() << nlohmann::json{{"text", *text}} << "\n";
  } else {
    session.out() << *text;
  }
  return Exit::kDone;
}

}  // namespace

// Text, also where no terminal reads it: an explanation is for people.
Exit run_explain(Session& session) {
  const server::Explained asked = asked_by(session);
  if (session.has("--offline")) return explain_offline(session, asked);
  std::string target(server::kExplainApi);
  target += session.has("--json") ? "?" : "?format=text&";
  const auto text = session.ask({.target = target + server::explain_query(asked)});
  if (text) {
    session.out() << *text;
    return Exit::kDone;
  }
  if (text.error().exit == Exit::kUsage) return session.fail_with(text.error());
  session.err() << "encore: " << text.error().message << "; by the configuration alone:\n";
  return explain_offline(session, asked);
}

Exit run_intercept_list(Session& session) {
  const bool json = session.has("--json");
  const auto text = session.ask({.target = json ? "/api/intercept" : "/api/intercept?format=text"});
  if (!text) return session.fail_with(text.error());
  session.out() << *text;
  return Exit::kDone;
}

Exit run_intercept_clear(Session& session) {
  std::string query;
  if (session.has("--client")) server::append_form("client", session.text("--client"), query);
  if (session.has("--host")) server::append_form("host", session.text("--host"), query);
  const auto done = session.ask({.method = "POST", .target = "/intercept/clear?" + query});
  if (!done) return session.fail_with(done.error());
  session.out() << *done;
  return Exit::kDone;
}

}  // namespace encore::cli

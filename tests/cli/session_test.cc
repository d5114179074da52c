// Options of a session, and texts that may go to a terminal.
#include "proxy/cli/session.h"

#include <sstream>

#include "tests/catch.h"

namespace encore::cli {
namespace {

struct Run {
  explicit Run(Values given, bool is_terminal = false)
      : values(std::move(given)),
        streams{.out = out, .err = err, .is_terminal = is_terminal},
        session(commands().front(), values, sources, streams) {}
  std::ostringstream out;
  std::ostringstream err;
  Values values;
  config::Sources sources;
  Streams streams;
  Session session;
};

TEST_CASE("JSON is for scripts, text for people, and options choose", "[cli][session]") {
  CHECK(Run({}, false).session.wants_json());
  CHECK_FALSE(Run({}, true).session.wants_json());
  CHECK(Run({{"--json", {"1"}}}, true).session.wants_json());
  CHECK_FALSE(Run({{"--text", {"1"}}}, false).session.wants_json());
}

TEST_CASE("the last value of an option counts, numbers have a range", "[cli][session]") {
  const Run run({{"--count", {"3", "7"}}, {"--names", {"65"}}, {"--interval", {"1x"}}});
  CHECK(run.session.text("--count") == "7");
  CHECK(run.session.text("--none", "usual") == "usual");
  CHECK(run.session.number("--count", {.min = 1}) == 7);
  CHECK_FALSE(run.session.number("--none", {}).value().has_value());
  for (const char* const option : {"--names", "--interval"}) {
    const auto number = run.session.number(option, {.min = 1, .max = 64});
    REQUIRE_FALSE(number.has_value());
    CHECK(number.error().exit == Exit::kUsage);
    CHECK(number.error().message.find(option) != std::string::npos);
  }
}

TEST_CASE("a failure names its command and has its status", "[cli][session]") {
  const Run run({});
  CHECK(run.session.fail_with({Exit::kUnreachable, "no proxy answers"}) == Exit::kUnreachable);
  CHECK(run.err.str() == "encore status: no proxy answers\n");
}

TEST_CASE("peers cannot command a terminal", "[cli][session]") {
  CHECK(printable("a\x1b[2Jb\x7f\xc3\xa9\n") == "a?[2Jb????");
  CHECK(printable_lines("a\x1b\nb") == "a?\nb");
}

}  // namespace
}  // namespace encore::cli

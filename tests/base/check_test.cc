#include "base/check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "tests/catch.h"

namespace encore {
namespace {

// Runs `fail` in a process of its own, and gives what it wrote to standard error before it died by
// abort().
template <typename Fail>
std::string report_of(Fail fail) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    ::dup2(ends[1], STDERR_FILENO);
    fail();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string report;
  std::array<char, 512> part{};
  for (ssize_t got = 0; (got = ::read(ends[0], part.data(), part.size())) > 0;) {
    report.append(part.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
  return report;
}

bool shows(const std::string& report, std::string_view text) {
  return report.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a check that fails says where, what, and what the thread was doing", "[base]") {
  const std::string report = report_of([] {
    const Doing whole{.step = "serving", .request = {}, .key = {}, .client_port = 53122};
    const PanicNote outer(whole);
    Doing doing{.step = "lookup", .request = "GET /a/b", .key = "f http://example.com/a/b"};
    const PanicNote inner(doing);
    doing.step = "waiting for the origin";
    ENCORE_CHECK(1 + 1 == 3, "sums are right");
  });
  CHECK(shows(report, "check_test.cc:"));
  CHECK(shows(report, "sums are right"));
  CHECK(shows(report, "failed: 1 + 1 == 3"));
  CHECK(shows(report,
              "\n  while: waiting for the origin\n    request: GET /a/b\n    key: f "
              "http://example.com/a/b\n  while: serving\n    client port: 53122\n"));
}

TEST_CASE("a report shows no query, no credentials, no field and no control character", "[base]") {
  const std::string report = report_of([] {
    const Doing doing{
        .step = "lookup",
        .request = "GET http://anna:pass@example.com/a?token=hidden HTTP/1.1\r\nCookie: id=hidden",
        .key = "f http://example.com/b\r\nAuthorization: Basic hidden"};
    const PanicNote note(doing);
    ENCORE_CHECK(false, "never");
  });
  CHECK(shows(report, "\n    request: GET http://...@example.com/a?...\n"));
  CHECK(shows(report, "\n    key: f http://example.com/b\n"));
  for (const char* secret : {"hidden", "anna", "pass", "token", "Cookie", "Authorization", "\r"}) {
    CAPTURE(secret);
    CHECK_FALSE(shows(report, secret));
  }
}

TEST_CASE("what a thread has finished is not in its report", "[base]") {
  const std::string report = report_of([] {
    const Doing doing{.step = "lookup", .request = "GET /finished", .key = {}};
    {
      const PanicNote note(doing);
    }
    ENCORE_CHECK(false, "never");
  });
  CHECK(shows(report, "failed: false"));
  CHECK_FALSE(shows(report, "while"));
}

}  // namespace encore

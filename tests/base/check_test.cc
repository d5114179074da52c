#include "base/check.h"

#include <string>

#include "tests/catch.h"
#include "tests/panic_report.h"

namespace encore {
namespace {

bool shows(const std::string& report, std::string_view text) {
  return report.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a check that fails says where, what, and what the thread was doing", "[base]") {
  const std::string report = report_of([] {
    const ThreadActivity whole{.who = "a worker", .step = "serving", .client_port = 53122};
    const PanicNote outer(whole);
    ThreadActivity activity{
        .step = "lookup", .request = "GET /a/b", .key = "f http://example.com/a/b"};
    const PanicNote inner(activity);
    activity.step = "waiting for the origin";
    ENCORE_CHECK(1 + 1 == 3, "sums are right");
  });
  CHECK(shows(report, "check_test.cc:"));
  CHECK(shows(report, "sums are right"));
  CHECK(shows(report, "failed: 1 + 1 == 3"));
  CHECK(shows(report,
              "\n  while: waiting for the origin\n    request: GET /a/b\n    key: f "
              "http://example.com/a/b\n  while: a worker, at: serving\n    client port: 53122\n"));
}

TEST_CASE("a report shows no query, no credentials, no field and no control character", "[base]") {
  const std::string report = report_of([] {
    const ThreadActivity activity{
        .step = "lookup",
        .request = "GET http://anna:pass@example.com/a?token=hidden HTTP/1.1\r\nCookie: id=hidden",
        .key = "f http://example.com/b\r\nAuthorization: Basic hidden"};
    const PanicNote note(activity);
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
    const ThreadActivity activity{.step = "lookup", .request = "GET /finished", .key = {}};
    {
      const PanicNote note(activity);
    }
    ENCORE_CHECK(false, "never");
  });
  CHECK(shows(report, "failed: false"));
  CHECK_FALSE(shows(report, "while"));
}

}  // namespace encore

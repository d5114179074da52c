// Responses to clients that are refused.
#include "proxy/intake/refusal.h"

#include <chrono>
#include <string>

#include "proxy/settings/path_readings.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

std::string line(const Refusal& refusal) {
  return std::to_string(refusal.status) + " " + std::string(to_string(refusal.outcome)) + " " +
         std::string(refusal.detail);
}

}  // namespace

TEST_CASE("each refusal has its status, outcome and detail", "[intake][refusal]") {
  using std::chrono::milliseconds;
  http::ParseError error;
  error.status = 431;
  CHECK(line(malformed(error)).starts_with("431 bad-request "));
  CHECK(line(request_timeout()) == "408 bad-request request-timeout");
  CHECK(line(unfinished_heads()) == "408 bad-request unfinished-heads");
  CHECK(line(refused_by({404, Outcome::kNoRoute, "no-route"})) == "404 no-route no-route");
  CHECK(line(refused_by_access("host-not-allowed", Refusal::Further::kEnds)) ==
        "403 denied host-not-allowed");
  CHECK(line(refused_by_access(kAmbiguousPath, Refusal::Further::kEnds)) ==
        "400 bad-request " + std::string(kAmbiguousPath));
  CHECK(line(no_longer_decrypted()) == "421 denied no-longer-decrypted");
  CHECK(line(no_login_inside()) == "403 denied no-credentials");
  CHECK(line(logins_busy()) == "503 denied logins-busy");
  CHECK(line(login_unchecked()) == "503 denied login-unchecked");
  CHECK(logins_busy().fields == "Retry-After: 1\r\n");
  CHECK(line(too_many("rate-limit", milliseconds(1001))) == "429 denied rate-limit");
  CHECK(too_many("rate-limit", milliseconds(1001)).fields == "Retry-After: 2\r\n");
  CHECK(too_many("x", Nanoseconds(0)).fields == "Retry-After: 1\r\n");
  const auto by_proxy =
      login_needed(http::FieldId::kProxyAuthorization, Credential::kNone, "C\r\n");
  CHECK(line(by_proxy) == "407 denied no-credentials");
  CHECK(by_proxy.fields == "C\r\n");
  CHECK(line(login_needed(http::FieldId::kAuthorization, Credential::kWrong, "")) ==
        "401 denied wrong-credentials");
  // The connection stays for those who may well come with credentials next.
  CHECK(by_proxy.further == Refusal::Further::kMayStay);
  CHECK(logins_busy().further == Refusal::Further::kEnds);
}

TEST_CASE("a redirection to https needs a host", "[intake][refusal]") {
  http::RequestHead head;
  head.method = http::Method::kGet;
  http::Target target;
  CHECK(line(moved_to_https(443, head, target)) == "400 bad-request no-host");
  target.authority.host = "h";
  target.form = http::TargetForm::kAsterisk;
  CHECK(moved_to_https(443, head, target).fields == "Location: https://h/\r\n");
}

TEST_CASE("the response says what the listener lets it say", "[intake][refusal]") {
  const TemporaryDirectory directory;
  write_text(directory / "404.html", "<p>gone</p>");
  config::Config config;
  config.listen = {{}, {}};
  config.listen[1].cache_status = false;
  config.http.error_pages = directory.path();
  config.log.request_id = config::RequestIds::kRespond;
  const auto runtime = Runtime::create(config, {}, "test");
  REQUIRE(runtime.has_value());
  ListenerContext listener{.mode = config::Mode::kForward, .index = 0};
  const auto reply = [&](const Refusal& refusal) {
    return reply_to(refusal, {.runtime = **runtime,
                              .listener = listener,
                              .http_date = "Sat, 28 Nov 2026 05:00:00 GMT",
                              .request_id = "id-1"});
  };
  const http::SyntheticReply denied = reply(refused_by({403, Outcome::kDenied, "connect-port"}));
  CHECK(denied.head ==
        "HTTP/1.1 403 Forbidden\r\nDate: Sat, 28 Nov 2026 05:00:00 GMT\r\n"
        "Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n"
        "Content-Length: " +
            std::to_string(denied.body.size()) +
            "\r\nCache-Status: encore; detail=connect-port\r\n"
            "X-Request-Id: id-1\r\n");
  CHECK(denied.body.starts_with("403 Forbidden\nThe request was refused. Reason: connect-port"));
  CHECK(denied.body.contains("forward.connect_ports"));
  // Clients of reverse listeners learn nothing of the configuration.
  listener.mode = config::Mode::kReverse;
  CHECK_FALSE(reply(refused_by({403, Outcome::kDenied, "connect-port"})).body.contains("forward."));
  CHECK(reply(refused_by({404, Outcome::kNoRoute, "no-route"})).body == "<p>gone</p>");
  listener.index = 1;
  CHECK_FALSE(reply(logins_busy()).head.contains("Cache-Status"));
  CHECK(reply(logins_busy()).head.contains("Retry-After: 1\r\n"));
}

}  // namespace encore::server

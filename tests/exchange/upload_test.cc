#include "proxy/exchange/upload.h"

#include "tests/catch.h"
#include "tests/exchange/some_request.h"

namespace encore::server {
namespace {

using UploadProgress = Upload::UploadProgress;
using Pace = Upload::Pace;
using std::chrono::seconds;

constexpr MonotonicTime kBegin{std::chrono::hours(1)};

std::shared_ptr<const RequestContext> post(std::string_view framing, const config::Config& config) {
  return some_request("POST http://a.example/ HTTP/1.1\nHost: a.example\n" + std::string(framing),
                      some_runtime(config));
}

TEST_CASE("content of a length is done with its last byte", "[exchange][upload]") {
  const auto request = post("Content-Length: 10\n", {});
  Upload upload(*request, kBegin);
  CHECK_FALSE(upload.is_done());
  CHECK(upload.take(4, kBegin) == UploadProgress::kMore);
  CHECK(upload.take(6, kBegin) == UploadProgress::kLast);
  CHECK(upload.is_done());
}

TEST_CASE("a request without content is done before it begins", "[exchange][upload]") {
  const auto none = post("", {});
  CHECK(Upload(*none, kBegin).is_done());
  const auto empty = post("Content-Length: 0\n", {});
  CHECK(Upload(*empty, kBegin).is_done());
}

TEST_CASE("content without a length is limited, at the limit and one past it",
          "[exchange][upload]") {
  config::Config config;
  config.limits.request_body_bytes = 10;
  const auto request = post("Transfer-Encoding: chunked\n", config);
  Upload upload(*request, kBegin);
  CHECK(upload.take(10, kBegin) == UploadProgress::kMore);
  CHECK(upload.take(1, kBegin) == UploadProgress::kTooLarge);
  Upload other(*request, kBegin);
  CHECK(other.take(10, kBegin) == UploadProgress::kMore);
  other.end();
  CHECK(other.is_done());
}

TEST_CASE("a client that brings nothing is silent, one that brings little is slow",
          "[exchange][upload]") {
  config::Config config;
  config.timeouts.client_body = seconds(10);
  config.limits.client_body_rate_min = 100;
  const auto request = post("Transfer-Encoding: chunked\n", config);
  Upload upload(*request, kBegin);
  CHECK(upload.look(kBegin) == Pace::kGood);
  CHECK(upload.look(kBegin + seconds(9)) == Pace::kGood);
  CHECK(upload.look(kBegin + seconds(10)) == Pace::kSilent);
  // 1,000 bytes in ten seconds are just enough.
  const std::uint64_t bytes = GENERATE(998U, 999U);
  CHECK(upload.take(bytes, kBegin + seconds(9)) == UploadProgress::kMore);
  CHECK(upload.take(1, kBegin + seconds(9)) == UploadProgress::kMore);
  CHECK(upload.look(kBegin + seconds(10)) == (bytes == 999 ? Pace::kGood : Pace::kSlow));
}

TEST_CASE("without a limit of time nobody is silent, and little is little within a minute",
          "[exchange][upload]") {
  config::Config config;
  config.timeouts.client_body = seconds(0);
  config.limits.client_body_rate_min = GENERATE(0U, 100U);
  const bool has_least = config.limits.client_body_rate_min != 0;
  const auto request = post("Transfer-Encoding: chunked\n", config);
  Upload upload(*request, kBegin);
  CHECK(upload.look(kBegin) == Pace::kGood);
  CHECK(upload.look(kBegin + seconds(60) - Nanoseconds(1)) == Pace::kGood);
  CHECK(upload.look(kBegin + seconds(60)) == (has_least ? Pace::kSlow : Pace::kGood));
  CHECK(upload.take(6000, kBegin + seconds(61)) == UploadProgress::kMore);
  CHECK(upload.look(kBegin + seconds(120)) == Pace::kGood);
}

TEST_CASE("time in which the origin was waited for is not the client's", "[exchange][upload]") {
  config::Config config;
  config.timeouts.client_body = seconds(10);
  config.limits.client_body_rate_min = 100;
  const auto request = post("Transfer-Encoding: chunked\n", config);
  Upload upload(*request, kBegin);
  CHECK(upload.look(kBegin) == Pace::kGood);
  upload.restart(kBegin + seconds(30));
  CHECK(upload.look(kBegin + seconds(31)) == Pace::kGood);
  upload.look_aside();
  // A new stretch begins with the next look.
  CHECK(upload.take(1, kBegin + seconds(39)) == UploadProgress::kMore);
  CHECK(upload.look(kBegin + seconds(45)) == Pace::kGood);
  CHECK(upload.take(1, kBegin + seconds(54)) == UploadProgress::kMore);
  CHECK(upload.look(kBegin + seconds(55)) == Pace::kSlow);
}

}  // namespace
}  // namespace encore::server

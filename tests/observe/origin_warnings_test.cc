#include "proxy/observe/origin_warnings.h"

#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

const MonotonicTime kStart{std::chrono::seconds(100)};
constexpr auto kTenth = std::chrono::milliseconds(100);

TEST_CASE("a noisy origin hides no other one's reason, nor another one of its own",
          "[server][warnings]") {
  OriginWarnings warnings;
  CHECK(warnings.line("http://dead:80", "refused", kStart) == "origin http://dead:80: refused");
  for (int i = 1; i < 10; ++i) {
    CHECK(warnings.line("http://dead:80", "refused", kStart + i * kTenth).empty());
  }
  CHECK(warnings.line("https://safe:443", "certificate has expired", kStart + 9 * kTenth) ==
        "origin https://safe:443: certificate has expired");
  CHECK(warnings.line("http://dead:80", "timeout", kStart + 9 * kTenth) ==
        "origin http://dead:80: timeout");
  CHECK(warnings.line("http://dead:80", "refused", kStart + 10 * kTenth) ==
        "origin http://dead:80: refused (9 times more before)");
}

TEST_CASE("reasons beyond the most that are told are counted", "[server][warnings]") {
  OriginWarnings warnings;
  for (std::size_t i = 0; i < OriginWarnings::kReasonsMax; ++i) {
    CHECK_FALSE(warnings.line("http://a:80", std::to_string(i), kStart).empty());
  }
  CHECK(warnings.line("http://b:80", "refused", kStart).empty());
  CHECK(warnings.line("http://b:80", "refused", kStart).empty());
  CHECK(warnings.line("http://b:80", "refused", kStart + 10 * kTenth) ==
        "origin http://b:80: refused (2 other failures were not told)");
}

TEST_CASE("of what clients name fewer reasons are told", "[server][warnings]") {
  OriginWarnings warnings(OriginWarnings::kForwardReasonsMax);
  std::size_t told = 0;
  for (int i = 0; i < 100; ++i) {
    told += warnings.line("http://" + std::to_string(i), "refused", kStart).empty() ? 0U : 1U;
  }
  CHECK(told == OriginWarnings::kForwardReasonsMax);
  CHECK(warnings.line("http://next", "refused", kStart + 10 * kTenth) ==
        "origin http://next: refused (92 other failures were not told)");
}

}  // namespace
}  // namespace encore::server

#include "proxy/process/purge_token.h"

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "tests/catch.h"

namespace encore::server {
namespace {

const MonotonicTime kNow{std::chrono::hours(5)};

PurgeOrder counted() {
  return {.urls = {"http://a.example/1"}, .prefixes = {"http://a.example/x/"}, .tags = {"t"}};
}

TEST_CASE("the purge that was counted is the one that its token is of", "[server][purge]") {
  const PurgeTokens tokens;
  PurgeOrder order = counted();
  order.token = tokens.make(order, kNow);
  CHECK(tokens.refusal(order, kNow).empty());
  CHECK(tokens.refusal(order, kNow + PurgeTokens::kLife).empty());
  CHECK_FALSE(tokens.refusal(order, kNow + PurgeTokens::kLife + std::chrono::seconds(2)).empty());
  CHECK_FALSE(PurgeTokens().refusal(order, kNow).empty());
  order.dry_run = true;  // it was one
  CHECK(tokens.refusal(order, kNow).empty());
}

TEST_CASE("another purge than was counted is refused, whatever is another", "[server][purge]") {
  const PurgeTokens tokens;
  PurgeOrder order = counted();
  order.token = tokens.make(order, kNow);
  using Edit = std::function<void(PurgeOrder&)>;
  const Edit change = GENERATE(values<Edit>({
      [](PurgeOrder& other) { other.soft = true; },
      [](PurgeOrder& other) { other.all = true; },
      [](PurgeOrder& other) { other.urls.front() += "0"; },
      [](PurgeOrder& other) { other.urls.push_back("http://a.example/2"); },
      [](PurgeOrder& other) { other.urls.clear(); },
      [](PurgeOrder& other) { std::swap(other.urls, other.prefixes); },
      [](PurgeOrder& other) {
        other.prefixes.insert(other.prefixes.begin(), std::exchange(other.urls, {}).front());
      },
      [](PurgeOrder& other) { other.tags = {"t", "u"}; },
      [](PurgeOrder& other) { other.tags = {"t u"}; },
      [](PurgeOrder& other) { other.token.back() = other.token.back() == '0' ? '1' : '0'; },
      [](PurgeOrder& other) { other.token.front() = other.token.front() == '1' ? '2' : '1'; },
      [](PurgeOrder& other) { other.token = "nonsense"; },
      [](PurgeOrder& other) { other.token += "0"; },
  }));
  change(order);
  CHECK_FALSE(tokens.refusal(order, kNow).empty());
}

TEST_CASE("a purge that was not counted needs no token", "[server][purge]") {
  CHECK(PurgeTokens().refusal(counted(), kNow).empty());
}

}  // namespace
}  // namespace encore::server

#include <string>

#include "config/derive.h"
#include "config/load.h"
#include "tests/catch.h"

using namespace encore;
using namespace encore::config;

TEST_CASE("A cache too large for what its filter's hash reaches is told what to do",
          "[config][filters]") {
  const std::string filters = "[filters]\npublish = [\"resident\"]\nhash = \"sha1-fields20\"\n";
  const auto read = [&](const std::string& more) {
    return parse_config(filters + more, "encore.toml", {});
  };
  const auto refused = read("[cache]\nmemory = \"2GiB\"\n");
  REQUIRE_FALSE(refused.has_value());
  const std::string& said = refused.error().message;
  CAPTURE(said);
  CHECK(said.starts_with("encore.toml:3:8: filters.hash: "));
  CHECK(said.find("131072 responses, one for each 16 KiB of cache.memory") != std::string::npos);
  // The number that it names is taken, and none that is larger.
  const auto at = said.find("up to ");
  REQUIRE(at != std::string::npos);
  const std::uint64_t most = std::stoull(said.substr(at + 6));
  CHECK(most > 100'000);
  const auto with = [&](std::uint64_t capacity) {
    return read("resident_capacity = " + std::to_string(capacity) +
                "\n[cache]\nmemory = \"2GiB\"\n");
  };
  CHECK(with(most).has_value());
  const auto beyond = with(most + 1);
  REQUIRE_FALSE(beyond.has_value());
  CHECK(beyond.error().message.starts_with("encore.toml:4:21: filters.resident_capacity: "));
  CHECK(beyond.error().message.ends_with("accepted: up to " + std::to_string(most)));
  CHECK(read("[cache]\nmemory = \"1GiB\"\n").has_value());
}

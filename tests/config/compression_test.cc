#include <string>
#include <vector>

#include "config/derive.h"
#include "config/load.h"
#include "tests/catch.h"

namespace encore::config {
namespace {

TEST_CASE("compression is off, and on with a list of codings or one of them",
          "[config][compression]") {
  CHECK(parse_config("", "encore.toml", {})->compression.codings.empty());
  const auto one = parse_config("[compression]\ncodings = \"br\"\n", "encore.toml", {});
  REQUIRE(one);
  CHECK(one->compression.codings == std::vector<std::string>{"br"});
  const auto all = parse_config(
      "[compression]\ncodings = [\"zstd\", \"gzip\"]\ntypes = [\"Text/*\"]\nmin_size = \"2KiB\"\n",
      "encore.toml", {});
  REQUIRE(all);
  CHECK(all->compression.types == std::vector<std::string>{"text/*"});
  CHECK_THAT(check_report(*all, 1),
             Catch::Matchers::Contains("zstd, gzip, unless known to be below 2KiB"));
}

TEST_CASE("codings, levels and memory that do not exist are refused", "[config][compression]") {
  const auto fault = [](const std::string& line) {
    const auto parsed = parse_config("[compression]\n" + line + "\n", "encore.toml", {});
    return parsed ? std::string() : parsed.error().message;
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(fault("codings = [\"deflate\"]"), Contains("\"deflate\" is not offered"));
  CHECK(fault("codings = [\"br\", \"gzip\", \"br\"]") ==
        "encore.toml:2:11: compression.codings: \"br\" twice; accepted: each coding once");
  CHECK_THAT(fault("br_level = 7"), Contains("br_level"));
  CHECK(fault("br_level = 6").empty());
  CHECK_FALSE(fault("gzip_level = 0").empty());
  CHECK_FALSE(fault("zstd_level = 10").empty());
  CHECK_FALSE(fault("min_size = 0").empty());
  CHECK_FALSE(fault("memory = \"1000KiB\"").empty());
  CHECK_FALSE(fault("types = [\"\"]").empty());
}

TEST_CASE("a rule that waits for a media type says nothing of compression",
          "[config][compression]") {
  const auto parsed =
      parse_config("[[rule]]\ncontent_type = \"text/*\"\ncompress = false\n", "encore.toml", {});
  REQUIRE_FALSE(parsed);
  CHECK_THAT(parsed.error().message, Catch::Matchers::Contains("rule.0.compress"));
}

}  // namespace
}  // namespace encore::config

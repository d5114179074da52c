#include <cmath>
#include <nlohmann/json.hpp>

#include "filter/cli/hash_measure.h"
#include "filter/theory.h"
#include "tests/filter_cli/run.h"

namespace encore::filter {

TEST_CASE("Every hash is measured next to its theory", "[filter-cli]") {
  const std::string line =
      "hashes --keys 2000 --bits 20000 --hashes 3 --filters 60 --json --no-timing";
  const Ran ran = run(line);
  REQUIRE(ran.exit_code == 0);
  CHECK(ran.out == run(line).out);
  const auto rows = nlohmann::json::parse(ran.out)["rows"];
  REQUIRE(rows.size() == static_cast<std::size_t>(kLastFamily) + 1);
  for (const auto& row : rows) {
    CAPTURE(row.dump());
    const std::string hash = row["hash"];
    if (hash == "squid-md5") {
      CHECK_FALSE(row.contains("sigmas"));  // four hashes only
      continue;
    }
    const bool uneven = hash == "md5-fields" || hash == "sha1-fields" || hash == "sha256-fields";
    CHECK(row["fpr_theory"].get<double>() == Approx(0.0174).epsilon(0.01));
    CHECK((std::abs(row["sigmas"].get<double>()) > 4.5) == uneven);
    CHECK((row["sigmas_even"].get<double>() > 4.5) == uneven);
    if (!row["fpr_fields"].is_null()) {
      CHECK(std::abs(row["sigmas_fields"].get<double>()) < 4.5);
    }
  }
  const auto timed = nlohmann::json::parse(
      run("hashes --hash md5 --keys 100 --bits 1000 --rounds 3 --key-size 64 --json").out)["rows"];
  REQUIRE(timed.size() == 1);
  CHECK(timed[0]["ns_per_key"].get<double>() > 0);
  CHECK(timed[0]["bytes_per_second"].get<double>() ==
        Approx(64e9 / timed[0]["ns_per_key"].get<double>()));
  check_refused(run("hashes --hash squid-md5 --hashes 3"), "accepted: 4");
  check_refused(run("hashes --hash rot13"), "sha256-numbered, all");
  CHECK(run("hashes --hashes 3 --keys 10 --bits 100 --filters 2 --no-timing")
            .out.find("\nhash squid-md5 with 3 hashes, accepted: 4") != std::string::npos);
}

TEST_CASE("The rate by fields is that of a naive sum over the positions", "[filter-cli]") {
  for (const HashTrial& trial :
       {HashTrial{.family = HashFamily::kMd5Fields, .keys = 100, .bits = 1000, .hashes = 3},
        HashTrial{.family = HashFamily::kSha1Fields20, .keys = 100, .bits = 700, .hashes = 5},
        HashTrial{.family = HashFamily::kSha256Fields, .keys = 90, .bits = 1024, .hashes = 4}}) {
    const std::uint64_t values = std::uint64_t{1} << field_width(trial.family, trial.bits);
    std::vector<double> probability(trial.bits);
    for (std::uint64_t value = 0; value < values; ++value) {
      probability[value % trial.bits] += 1.0 / static_cast<double>(values);
    }
    double set = 0;
    for (const double q : probability) {
      set += q * (1 - std::pow(1 - q, static_cast<double>(trial.keys * trial.hashes)));
    }
    CHECK(fields_fpr(trial) == Approx(std::pow(set, trial.hashes)).epsilon(1e-9));
  }
  const HashTrial even{.family = HashFamily::kSha256Fields, .keys = 90, .bits = 1024, .hashes = 4};
  CHECK(fields_fpr(even) == Approx(fpr({Layout::kClassic, 1024, 4}, 90)).epsilon(1e-9));
}

}  // namespace encore::filter

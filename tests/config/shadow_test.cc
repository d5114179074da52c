// [shadow]: what its texts say, what is refused, and the kernels that follow.
#include <string>
#include <vector>

#include "cache/spatial_sample.h"
#include "config/derive.h"
#include "config/load.h"
#include "config/shadow_policy.h"
#include "tests/catch.h"

namespace encore::config {
namespace {

Result<Config> loaded(std::vector<std::string> sets) {
  return load_config({.path = {}, .sets = std::move(sets)});
}

std::string fault_of(std::vector<std::string> sets) {
  const auto config = loaded(std::move(sets));
  return config ? "" : config.error().message;
}

}  // namespace

TEST_CASE("A policy of [shadow] is an admission, its parameter and an eviction",
          "[config][shadow]") {
  CHECK(parse_shadow_policy("always") ==
        ShadowPolicy{.admission = cache::AdmissionPolicy::kAlways});
  CHECK(parse_shadow_policy("nth-hit:3") ==
        ShadowPolicy{.admission = cache::AdmissionPolicy::kNthHit, .min_requests = 3});
  CHECK(parse_shadow_policy("size-threshold:64KiB+lru") ==
        ShadowPolicy{.admission = cache::AdmissionPolicy::kSizeThreshold,
                     .eviction = cache::EvictionPolicy::kLru,
                     .size_threshold_bytes = 65536});
  CHECK(parse_shadow_policy("probability:0.25+w-tinylfu") ==
        ShadowPolicy{.admission = cache::AdmissionPolicy::kProbability,
                     .eviction = cache::EvictionPolicy::kWTinyLfu,
                     .probability = 0.25});
  for (const std::string_view wrong : {"",
                                       "alwys",
                                       "always:1",
                                       "nth-hit:",
                                       "nth-hit:1",
                                       "nth-hit:17",
                                       "nth-hit:3x",
                                       "nth-hit:-3",
                                       "nth-hit:99999999999",
                                       "probability:0",
                                       "probability:1.5",
                                       "probability:nan",
                                       "probability:inf",
                                       "size-threshold:0",
                                       "size-threshold:many",
                                       "always+belady",
                                       "always+lrb",
                                       "always+",
                                       "+lru",
                                       "always+lru+lru",
                                       "always+lru:3",
                                       "always lru",
                                       "second-hit\n"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_shadow_policy(wrong));
  }
}

TEST_CASE("What [shadow] cannot mean is refused with its key", "[config][shadow]") {
  CHECK(loaded({"shadow.policies=always,second-hit,nth-hit:4+arc"}));
  CHECK(fault_of({"shadow.policies=alwys"}).find("shadow.policies") != std::string::npos);
  CHECK(fault_of({"shadow.policies=always,always"}).find("\"always\" twice") != std::string::npos);
  CHECK(fault_of({"shadow.sample=0"}).find("shadow.sample") != std::string::npos);
  CHECK(fault_of({"shadow.cache=1KiB"}).find("shadow.cache") != std::string::npos);
  std::string many;
  for (int i = 0; i < 17; ++i) many += ",probability:0.0" + std::to_string(i + 1);
  CHECK(fault_of({"shadow.policies=" + many.substr(1)}).find("too long") != std::string::npos);
}

TEST_CASE("The kernel of a policy is that of the config but for what the policy says",
          "[config][shadow]") {
  const auto config =
      loaded({"cache.memory=64MiB", "cache.eviction=s3-fifo", "cache.shards=8",
              "admission.capacity=8000", "admission.min_requests=5", "cache.max_object=1GiB"});
  REQUIRE(config);
  const auto kernel = shadow_kernel(*config, *parse_shadow_policy("nth-hit"));
  REQUIRE(kernel);
  CHECK(kernel->capacity_bytes == 64 * kMiB);
  CHECK(kernel->max_object_bytes == 8 * kMiB);
  CHECK(kernel->max_object_share == 1);
  CHECK(kernel->shards == 1);
  CHECK(kernel->eviction == cache::EvictionPolicy::kS3Fifo);
  CHECK(kernel->admission.min_requests == 5);
  CHECK(kernel->admission.filter.capacity == 8000);
  CHECK_FALSE(kernel->concurrent);
  const auto other = loaded({"cache.memory=64MiB", "shadow.cache=1GiB"});
  REQUIRE(other);
  const auto larger = shadow_kernel(*other, *parse_shadow_policy("nth-hit:2+lru"));
  REQUIRE(larger);
  CHECK(larger->capacity_bytes == kGiB);
  CHECK(larger->max_object_bytes == 32 * kMiB);
  CHECK(larger->eviction == cache::EvictionPolicy::kLru);
  CHECK(larger->admission.min_requests == 2);
}

TEST_CASE("The report says what is simulated, and whether the sample is too small",
          "[config][shadow]") {
  CHECK(check_report(*loaded({}), 1).find("\nshadow") == std::string::npos);
  const std::string report = check_report(*loaded({"shadow.policies=always,never"}), 1);
  CHECK(report.find("2 simulated caches on 1 key in 64, of a cache of 256MiB") !=
        std::string::npos);
  CHECK(report.find("lower shadow.sample") == std::string::npos);
  CHECK(check_report(*loaded({"shadow.policies=always", "cache.memory=8MiB"}), 1)
            .find("lower shadow.sample") != std::string::npos);
}

}  // namespace encore::config

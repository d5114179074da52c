// Names of eviction policies with parameters: how they are read and written, and that each
// parameter has an effect where it should, and none at its default.
#include "cache/eviction_name.h"

#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

std::string refusal(std::string_view text) {
  const auto named = parse_eviction_name(text);
  return named ? "accepted" : named.error().message;
}

std::vector<bool> hits_of(const NamedEviction& named) {
  KernelOptions options = plain_options(100);
  options.eviction = named.policy;
  options.eviction_settings.values = named.values;
  options.concurrent = false;
  const auto kernel = make_kernel(options);
  std::mt19937_64 random(5);
  std::geometric_distribution<std::uint64_t> popular(0.012);
  std::vector<bool> hits;
  for (std::uint64_t i = 0; i < 15'000; ++i) {
    // Popular objects that move on, and some that come twice alone.
    const std::uint64_t id = i % 3 == 0 ? 10'000 + i / 6 : popular(random) + i / 1000 * 5;
    const std::uint64_t size = 1 + id % 3;
    hits.push_back(kernel->lookup(key(id), at(0)).state != LookupState::kMiss);
    if (!hits.back()) {
      kernel->commit(key(id), {.charge_bytes = size}, 0, at(0));
    }
  }
  return hits;
}

}  // namespace

TEST_CASE("A policy's name with parameters is read, and written as it was read", "[cache]") {
  const auto named = parse_eviction_name("s3-fifo(ghost=2, small=20%)");
  REQUIRE(named);
  CHECK(named->policy == EvictionPolicy::kS3Fifo);
  CHECK(named->values.real(parameters_of(named->policy), "small") == 0.2);
  CHECK(named->values.real(parameters_of(named->policy), "ghost") == 2);
  CHECK(named->values.count(parameters_of(named->policy), "promote") == 2);  // its default
  CHECK(eviction_name(named->policy, named->values) == "s3-fifo(small=0.2,ghost=2)");
  const auto tiny = parse_eviction_name("lhd(fade=1e-300)");
  REQUIRE(tiny);
  CHECK(eviction_name(tiny->policy, tiny->values) == "lhd(fade=1e-300)");
  const auto weighs = parse_eviction_name("gdsf(cost= bytes)");
  REQUIRE(weighs);
  CHECK(eviction_name(weighs->policy, weighs->values) == "gdsf(cost=bytes)");
  CHECK(refusal("lhd(cost=2)") == "lhd(cost=2), accepted: 1, latency, bytes");
  for (const std::string_view name : kEvictionNames) {
    CHECK(eviction_name(parse_eviction_name(name)->policy, {}) == name);
  }
}

TEST_CASE("A wrong name or value of a policy is refused with the accepted ones", "[cache]") {
  CHECK(refusal("s3-fif").starts_with(
      "unknown eviction policy \"s3-fif\", did you mean \"s3-fifo\"? Accepted: sieve lru"));
  CHECK(
      refusal("nothing(a=1)").starts_with("unknown eviction policy \"nothing\", accepted: sieve"));
  CHECK(refusal("s3-fifo(smal=0.2)") ==
        "s3-fifo has no parameter \"smal\", did you mean \"small\"? Accepted: small ghost promote");
  CHECK(refusal("s3-fifo()") == "s3-fifo has no parameter \"\", accepted: small ghost promote");
  CHECK(refusal("lru(k=2)") == "lru has no parameters, not \"k\"");
  CHECK(refusal("s3-fifo(small=1)") == "s3-fifo(small=1), accepted: 0.0001 to 0.9999");
  CHECK(refusal("s3-fifo(small=nan)") == "s3-fifo(small=nan), accepted: 0.0001 to 0.9999");
  CHECK(refusal("s3-fifo(small=)") == "s3-fifo(small=), accepted: 0.0001 to 0.9999");
  CHECK(refusal("s3-fifo(small)") == "s3-fifo(small=), accepted: 0.0001 to 0.9999");
  CHECK(refusal("s3-fifo(promote=1.5)") ==
        "s3-fifo(promote=1.5), accepted: a whole number, 1 to 3");
  CHECK(refusal("s3-fifo(promote=100%)") ==
        "s3-fifo(promote=100%), accepted: a whole number, 1 to 3");
  CHECK(refusal("s3-fifo(small=0.2,small=0.3)") == "s3-fifo has \"small\" twice, accepted: once");
  CHECK(refusal("s3-fifo(small=0.2") ==
        "\"s3-fifo(small=0.2\" has no \")\" at its end, accepted: name(parameter=value,...)");
  CHECK(refusal("s3-fifo(small=0.2)x") ==
        "\"s3-fifo(small=0.2)x\" has no \")\" at its end, accepted: name(parameter=value,...)");
}

TEST_CASE("Parameters have a default in their range, and names of their own", "[cache]") {
  for (std::size_t i = 0; i < kEvictionPolicyCount; ++i) {
    const auto policy = static_cast<EvictionPolicy>(i);
    INFO(to_string(policy));
    std::set<std::string_view> names;
    REQUIRE(parameters_of(policy).size() <= kPolicyParametersMax);
    for (const PolicyParameter& parameter : parameters_of(policy)) {
      INFO(parameter.name);
      CHECK(names.insert(parameter.name).second);
      for (const double value : {parameter.initial, parameter.min, parameter.max}) {
        const auto named =
            parse_eviction_name(std::string(to_string(policy)) + "(" + std::string(parameter.name) +
                                "=" + parameter_text(parameter, value) + ")");
        CHECK(named);
      }
    }
  }
}

TEST_CASE("Defaults that are given change no decision, other values do", "[cache]") {
  for (std::size_t i = 0; i < kEvictionPolicyCount; ++i) {
    const auto policy = static_cast<EvictionPolicy>(i);
    // Without hints, and without a regressor, these two have nothing to compare.
    if (policy == EvictionPolicy::kBelady || policy == EvictionPolicy::kLrb) continue;
    INFO(to_string(policy));
    const auto plain = hits_of({policy, {}});
    const auto parameters = parameters_of(policy);
    NamedEviction defaults{policy, {}};
    for (std::size_t number = 0; number < parameters.size(); ++number) {
      defaults.values.set(number, parameters[number].initial);
      bool differs = false;
      for (const double value : {parameters[number].min, parameters[number].max}) {
        NamedEviction other{policy, {}};
        other.values.set(number, value);
        differs = differs || hits_of(other) != plain;
      }
      INFO(parameters[number].name);
      CHECK(differs);
    }
    const bool same = hits_of(defaults) == plain;
    CHECK(same);
  }
}

}  // namespace encore::cache::test

// The kernel's answers about a key to a caller that only reads.
#include <vector>

#include "cache/kernel.h"
#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

class Seen final : public Visitor {
 public:
  Verdict visit(const EntryView& entry) override {
    variants.push_back(entry.variant);
    return Verdict::kRemove;
  }
  std::vector<std::uint64_t> variants;
};

std::vector<std::uint64_t> peeked(const Kernel& kernel, const Key& of) {
  Seen seen;
  kernel.peek(of, seen);
  return seen.variants;
}

KernelOptions remembering(AdmissionPolicy policy) {
  KernelOptions options = plain_options(1000);
  options.admission.policy = policy;
  return options;
}

}  // namespace

TEST_CASE("A peek shows all variants, those past their time too, and takes none", "[cache][peek]") {
  const auto kernel = make_kernel(plain_options(1000));
  store(*kernel, key(1), {.variant = 7, .charge_bytes = 10, .payload = 1}, at(0));
  store(*kernel, key(1),
        {.variant = 8, .charge_bytes = 10, .fresh_until = at(1), .keep_until = at(2), .payload = 2},
        at(0));
  store(*kernel, key(2), {.charge_bytes = 10, .payload = 3}, at(0));
  const KernelStatistics before = kernel->statistics();
  CHECK(peeked(*kernel, key(1)) == std::vector<std::uint64_t>{8, 7});
  CHECK(peeked(*kernel, key(1)) == std::vector<std::uint64_t>{8, 7});
  CHECK(peeked(*kernel, key(3)).empty());
  CHECK(kernel->statistics().counters == before.counters);
  CHECK(kernel->statistics().objects == 3);
}

TEST_CASE("What is peeked at is evicted as if nobody had looked", "[cache][peek]") {
  for (const EvictionPolicy policy :
       {EvictionPolicy::kLru, EvictionPolicy::kSieve, EvictionPolicy::kS3Fifo, EvictionPolicy::kLfu,
        EvictionPolicy::kArc}) {
    INFO(to_string(policy));
    KernelOptions options = plain_options(30);
    options.eviction = policy;
    const auto looked_at = make_kernel(options);
    const auto left_alone = make_kernel(options);
    for (std::uint64_t i = 0; i < 60; ++i) {
      for (const Kernel* const kernel : {looked_at.get(), left_alone.get()}) {
        store(const_cast<Kernel&>(*kernel), key(i * 7 % 11), {.charge_bytes = 10, .payload = i},
              at(static_cast<std::int64_t>(i)));
      }
      for (std::uint64_t k = 0; k < 11; ++k) (void)peeked(*looked_at, key(k));
      for (std::uint64_t k = 0; k < 11; ++k) {
        REQUIRE(peeked(*looked_at, key(k)) == peeked(*left_alone, key(k)));
      }
    }
  }
}

TEST_CASE("What second-hit remembers of a key is told with its generation", "[cache][peek]") {
  KernelOptions options = remembering(AdmissionPolicy::kSecondHit);
  options.admission.filter.capacity = 4;
  const auto kernel = make_kernel(options);
  const auto recalled = [&] { return kernel->recall(key(1)); };
  CHECK(recalled().by == RequestHistory::By::kFilter);
  CHECK(recalled().requests == 0);
  CHECK(recalled().stored_at == 2);
  CHECK(recalled().seen == filter::Seen::kNew);
  CHECK(kernel->admit(key(1), {.size_bytes = 1}, at(0)) == AdmitReason::kFirstRequest);
  CHECK(recalled().requests == 1);
  CHECK(recalled().seen == filter::Seen::kCurrent);
  for (std::uint64_t i = 10; i < 14; ++i) kernel->admit(key(i), {.size_bytes = 1}, at(0));
  CHECK(recalled().seen == filter::Seen::kOlder);
  // To be asked is not to be seen: it is as old as before.
  CHECK(kernel->admission_statistics().refreshes == 0);
  for (std::uint64_t i = 20; i < 24; ++i) kernel->admit(key(i), {.size_bytes = 1}, at(0));
  CHECK(recalled().requests == 0);
}

TEST_CASE("Nth-hit tells how many requests it knows, a rule how many it wants", "[cache][peek]") {
  KernelOptions options = remembering(AdmissionPolicy::kNthHit);
  options.admission.min_requests = 4;
  const auto kernel = make_kernel(options);
  for (std::uint32_t known = 0; known < 3; ++known) {
    CHECK(kernel->recall(key(1)).requests == known);
    CHECK(kernel->recall(key(1)).stored_at == 4);
    CHECK(kernel->admit(key(1), {.size_bytes = 1}, at(0)) == AdmitReason::kFewRequests);
  }
  CHECK(kernel->recall(key(1)).requests == 3);
  const RequestHistory by_rule =
      kernel->recall(key(1), {.kind = AdmissionRule::Kind::kNthHit, .parameter = 2});
  CHECK(by_rule.requests == 1);
  CHECK(by_rule.stored_at == 2);
}

TEST_CASE("Sets and sketches tell what they have, others that they have nothing", "[cache][peek]") {
  const auto exact = make_kernel(remembering(AdmissionPolicy::kExactSecondHit));
  CHECK(exact->recall(key(1)).requests == 0);
  exact->admit(key(1), {.size_bytes = 1}, at(0));
  CHECK(exact->recall(key(1)).by == RequestHistory::By::kSet);
  CHECK(exact->recall(key(1)).requests == 1);
  const auto tiny = make_kernel(remembering(AdmissionPolicy::kTinyLfu));
  tiny->admit(key(1), {.size_bytes = 1}, at(0));
  CHECK(tiny->recall(key(1)).by == RequestHistory::By::kFrequency);
  CHECK(tiny->recall(key(1)).requests == 1);
  CHECK(make_kernel(remembering(AdmissionPolicy::kAlways))->recall(key(1)).by ==
        RequestHistory::By::kNothing);
}

}  // namespace encore::cache::test

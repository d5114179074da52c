// Counts of simulated caches, field by field.
#include "cache/shadow_cache.h"
#include "tests/catch.h"

namespace encore::cache {

TEST_CASE("Counts of shadow caches are subtracted and added each by itself", "[cache][shadow]") {
  const ShadowCounts before{.requests = 1,
                            .hits = 2,
                            .validations = 3,
                            .bytes_requested = 4,
                            .bytes_hit = 5,
                            .objects_written = 6,
                            .bytes_written = 7};
  const ShadowCounts after{.requests = 11,
                           .hits = 102,
                           .validations = 1'003,
                           .bytes_requested = 10'004,
                           .bytes_hit = 100'005,
                           .objects_written = 1'000'006,
                           .bytes_written = 10'000'007};
  ShadowCounts counts = after - before;
  CHECK(counts.requests == 10);
  CHECK(counts.hits == 100);
  CHECK(counts.validations == 1'000);
  CHECK(counts.bytes_requested == 10'000);
  CHECK(counts.bytes_hit == 100'000);
  CHECK(counts.objects_written == 1'000'000);
  CHECK(counts.bytes_written == 10'000'000);
  counts += before;
  CHECK(counts.requests == after.requests);
  CHECK(counts.hits == after.hits);
  CHECK(counts.validations == after.validations);
  CHECK(counts.bytes_requested == after.bytes_requested);
  CHECK(counts.bytes_hit == after.bytes_hit);
  CHECK(counts.objects_written == after.objects_written);
  CHECK(counts.bytes_written == after.bytes_written);
}

}  // namespace encore::cache

#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

TEST_CASE("An entry grows by its reservation where it is still there with its payload", "[cache]") {
  CountingOwner owner;
  const auto kernel = make_kernel(plain_options(100), {.owner = &owner});
  REQUIRE(kernel->reserve(key(1), 30, at(0)) == ReserveOutcome::kReserved);
  REQUIRE(kernel->commit(key(1), {.charge_bytes = 30, .fresh_until = at(9), .payload = 1}, 30,
                         at(0)) == CommitOutcome::kStored);
  const auto grow = [&](Payload payload, std::uint64_t variant) {
    REQUIRE(kernel->reserve(key(1), 10, at(1)) == ReserveOutcome::kReserved);
    return kernel->grow(key(1), {.variant = variant, .payload = payload, .reserved_bytes = 10},
                        at(1));
  };
  CHECK(grow(1, 0));
  CHECK(kernel->statistics().used_bytes == 40);
  CHECK_FALSE(grow(2, 0));  // another has taken its place
  CHECK_FALSE(grow(1, 7));
  CHECK(kernel->statistics().used_bytes == 40);
  CHECK(kernel->statistics().reserved_bytes == 0);
  kernel->mark_stale(key(1), at(2));
  CHECK(grow(1, 0));
  // It is as stale as before, and all of it goes in one call.
  CHECK(kernel->lookup(key(1), at(3)).state == LookupState::kStale);
  CHECK(owner.total() == 0);
  CHECK(kernel->invalidate(key(1), at(3)) == 1);
  CHECK(owner.total() == 1);
  CHECK(kernel->statistics().used_bytes == 0);
  CHECK_FALSE(grow(1, 0));
  CHECK(kernel->statistics().used_bytes == 0);
}

}  // namespace
}  // namespace encore::cache::test

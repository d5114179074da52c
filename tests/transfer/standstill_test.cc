#include "proxy/transfer/standstill.h"

#include "tests/catch.h"

namespace encore::server {
namespace {

using std::chrono::milliseconds;

TEST_CASE("who takes nothing from one look to the third stands still", "[transfer]") {
  Standstill client;
  MonotonicTime now(std::chrono::hours(1));
  CHECK_FALSE(client.look(now, 7));
  CHECK_FALSE(client.look(now += Standstill::kLookInterval, 7));
  CHECK(client.look(now += Standstill::kLookInterval, 7));
  // Those that wait for it do so for the time of the looks.
  CHECK(2 * Standstill::kLookInterval < milliseconds(100));
  CHECK(Standstill::kLimit <= 2 * Standstill::kLookInterval);
}

TEST_CASE("who takes one byte between two looks does not stand still", "[transfer]") {
  Standstill client;
  MonotonicTime now(std::chrono::hours(1));
  for (std::uint64_t taken = 0; taken < 100; ++taken) {
    CHECK_FALSE(client.look(now += Standstill::kLookInterval, taken));
    CHECK_FALSE(client.look(now += milliseconds(1), taken));
  }
}

}  // namespace
}  // namespace encore::server

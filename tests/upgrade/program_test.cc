#include "proxy/upgrade/program.h"

#include <cstdlib>

#include "proxy/net/child_process.h"
#include "tests/catch.h"

namespace encore::upgrade {

TEST_CASE("a program starts with its arguments and one channel", "[upgrade][program]") {
  auto ends = Channel::pair();
  REQUIRE(ends);
  auto& [ours, theirs] = *ends;
  // The shell answers what it has inherited: bytes that are no message.
  const Program program{
      .path = "/bin/sh",
      .arguments = {"sh", "-c",
                    "test \"$ENCORE_UPGRADE_CHANNEL\" = 3 && test ! -e /proc/self/fd/4 && "
                    "printf \"$1\" >&3 && exit 7",
                    "sh", "word"}};
  const auto process = start(program, theirs);
  REQUIRE(process);
  (void)theirs.release();
  CHECK(net::reap(*process) == "status 7");
  CHECK(ours.receive().error() == Channel::Nothing::kBroken);
  CHECK(ours.receive().error() == Channel::Nothing::kEver);
}

TEST_CASE("a program that is not there is an error with its path", "[upgrade][program]") {
  auto ends = Channel::pair();
  REQUIRE(ends);
  const auto process = start({.path = "/nowhere/encore", .arguments = {"encore"}}, ends->second);
  REQUIRE_FALSE(process);
  CHECK(process.error().message == "cannot start /nowhere/encore: No such file or directory");
}

TEST_CASE("a variable set by hand is no channel", "[upgrade][program]") {
  ::setenv("ENCORE_UPGRADE_CHANNEL", "0", 1);
  CHECK_FALSE(take_inherited());
  CHECK(std::getenv("ENCORE_UPGRADE_CHANNEL") == nullptr);
  CHECK_FALSE(take_inherited());
}

}  // namespace encore::upgrade

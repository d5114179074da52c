#include "tests/fuzz/proxy/accounts.h"

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/simulate/ring_loop.h"
#include "tests/simulate/system.h"

namespace encore::proxyfuzz {
namespace {

// A request of 100 bytes whose client has an answer of 500, of which 300 are content.
struct Told {
  std::vector<std::string> findings;
  Accounts::Sums sums;
};

Told told_of(const std::vector<std::string>& lines, bool is_whole = true) {
  const simulate::System system(1, simulate::Adversity::none());
  Told out;
  World world(1, false, 1);
  world.on_finding = [&](const Finding& finding) { out.findings.push_back(finding.text); };
  Random random(1);
  const auto request = world.make_request(world.pick_url(random));
  Accounts accounts(world);
  accounts.note_begun(*request, {.bytes = 100});
  if (is_whole) {
    accounts.note_whole(*request, {.status = 200, .bytes = 500, .content = 300});
  } else {
    accounts.note_unfinished(*request, 200);
  }
  for (const std::string& line : lines) {
    accounts.take(std::to_string(request->tag) + " " + line + "\n");
  }
  out.sums = accounts.settle();
  return out;
}

bool is_told(const std::vector<std::string>& lines, std::string_view what, bool is_whole = true) {
  const Told told = told_of(lines, is_whole);
  return told.findings.size() == 1 && told.findings[0].find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("A request that is logged as its client had it is well", "[simulate]") {
  const Told told = told_of({"200 500 300 100 hit +"});
  CHECK(told.findings.empty());
  CHECK(told.sums.requests == 1);
  CHECK(told.sums.bytes == 500);
  CHECK(told.sums.content == 300);
  CHECK(told.sums.outcomes.at("hit") == 1);
}

TEST_CASE("Each number of a line that differs is told", "[simulate]") {
  CHECK(is_told({"206 500 300 100 hit +"}, "another status"));
  CHECK(is_told({"200 501 300 100 hit +"}, "other bytes are logged"));
  CHECK(is_told({"200 500 299 100 hit +"}, "other bytes of content"));
  CHECK(is_told({"200 500 300 200 hit +"}, "other bytes of the request"));
  CHECK(is_told({"200 500 300 90 hit +"}, "other bytes of the request"));
  CHECK(told_of({"200 500 300 90 hit -"}).findings.empty());
}

TEST_CASE("A request has one line", "[simulate]") {
  CHECK(is_told({}, "not logged"));
  CHECK(is_told({"200 500 300 100 hit +", "200 500 300 100 hit +"}, "has another"));
}

TEST_CASE("Who left has at most what is logged, and perhaps no line", "[simulate]") {
  CHECK(told_of({}, false).findings.empty());
  CHECK(told_of({"200 200 100 100 client-aborted X"}, false).findings.empty());
  CHECK(is_told({"200 199 100 100 client-aborted X"}, "fewer bytes", false));
  CHECK(is_told({"200 200 201 100 client-aborted X"}, "more content", false));
}

}  // namespace encore::proxyfuzz

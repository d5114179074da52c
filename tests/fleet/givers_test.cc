#include "proxy/fleet/givers.h"

#include "tests/catch.h"

namespace encore::fleet {
namespace {

constexpr std::uint64_t kMoment = 1'700'000'000'000;

Presence presence_of(std::uint64_t known, std::uint64_t seen_ms = kMoment) {
  return {.instance = "of" + std::to_string(known),
          .facts = {.version = "0.1.0",
                    .config = "abc",
                    .hit_ratio = {},
                    .fill = {},
                    .filter = FilterFacts{.form = "split m=1", .keys = "k", .known = known}},
          .seen_ms = seen_ms};
}

std::vector<std::string> names_of(const Givers& givers) {
  std::vector<std::string> names;
  for (const Giver& each : givers.fit) names.push_back(each.node);
  return names;
}

using Order = std::vector<std::string>;

TEST_CASE("the node that knows most is asked first, and one that may hang last", "[fleet]") {
  NodeTable nodes;
  nodes.add("self", presence_of(0));
  nodes.add("few", presence_of(5));
  nodes.add("most", presence_of(70));
  nodes.add("newest", presence_of(5, kMoment + 9));
  nodes.add("silent", presence_of(900, kMoment - 5001));
  nodes.add("gone", presence_of(900, kMoment - 15'001));
  nodes.add("empty", presence_of(0));
  const Givers found = find_givers(nodes, "self", kMoment);
  CHECK(names_of(found) == Order{"most", "newest", "few", "silent"});
  CHECK(found.fit[0].instance == "of70");
  CHECK(found.unfit.empty());
  // A process may be here that has no presence yet, or gives and adopts none.
  CHECK(find_givers(nodes, "other", kMoment).fit.empty());
  Presence without = presence_of(0);
  without.facts.filter.reset();
  nodes.add("self", without);
  CHECK(find_givers(nodes, "self", kMoment).fit.empty());
}

TEST_CASE("a filter of another build or configuration does not fit", "[fleet]") {
  NodeTable nodes;
  nodes.add("self", presence_of(0));
  Presence other = presence_of(7);
  other.facts.version = "0.2.0";
  nodes.add("a", other);
  other = presence_of(7);
  other.facts.filter->form = "split m=2";
  nodes.add("b", other);
  other = presence_of(7);
  other.facts.filter->keys = "other";
  nodes.add("c", other);
  other = presence_of(7);
  other.facts.filter.reset();
  nodes.add("d", other);
  const Givers found = find_givers(nodes, "self", kMoment);
  CHECK(found.fit.empty());
  REQUIRE(found.unfit.size() == 3);
  CHECK(found.unfit[0] ==
        std::pair<std::string, std::string>("a", "it is version 0.2.0, this node 0.1.0"));
  CHECK(found.unfit[1].second == "its filter is \"split m=2\", this node's \"split m=1\"");
  CHECK(found.unfit[2].first == "c");
  CHECK_THAT(found.unfit[2].second, Catch::StartsWith("its keys differ: "));
}

}  // namespace
}  // namespace encore::fleet

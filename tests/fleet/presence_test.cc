#include "proxy/fleet/presence.h"

#include "tests/catch.h"

namespace encore::fleet {
namespace {

Presence presence_at(std::uint64_t seen_ms) {
  return {.instance = "0123",
          .facts = {.version = "0.1.0", .config = "abc", .hit_ratio = 0.5, .fill = {}},
          .lag_seconds = 2,
          .seen_ms = seen_ms};
}

constexpr std::uint64_t kNow = 1'700'000'000'000;
constexpr std::uint64_t kDayMs = 86'400'000;

TEST_CASE("a node's presence is read as it was written", "[fleet]") {
  const auto read = decode_presence(encode(presence_at(7)));
  REQUIRE(read);
  CHECK(read->instance == "0123");
  CHECK(read->facts.version == "0.1.0");
  CHECK(read->facts.config == "abc");
  CHECK(read->facts.hit_ratio == 0.5);
  CHECK_FALSE(read->facts.fill);
  CHECK(read->lag_seconds == 2);
  CHECK(read->seen_ms == 7);
}

TEST_CASE("a presence that is none is refused", "[fleet]") {
  const std::string good = encode(presence_at(7));
  const auto with = [&good](std::string_view from, std::string_view to) {
    std::string text = good;
    const std::size_t place = text.find(from);
    REQUIRE(place != std::string::npos);
    return text.replace(place, from.size(), to);
  };
  const std::string long_number(3000, '7');
  CHECK(decode_presence(good));
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), with("\"abc\"", "1"),
        with("abc", "a\\u001b"), with("abc", "<b>\\\"x"), with("abc", std::string(65, 'a')),
        with("7", "-7"), with("7", "\"7\""), with("2.0", "1e999"), with("2.0", "-1"),
        with("7", long_number)}) {
    CAPTURE(text);
    CHECK_FALSE(decode_presence(text));
  }
  // A ratio that is none is left out.
  const auto odd = decode_presence(with("0.5", "7.5"));
  REQUIRE(odd);
  CHECK_FALSE(odd->facts.hit_ratio);
}

TEST_CASE("nodes are present, away, and after a day forgotten", "[fleet]") {
  NodeTable nodes;
  nodes.read({"self", encode(presence_at(kNow)), "here", encode(presence_at(kNow - 15'000)), "away",
              encode(presence_at(kNow - 15'001)), "old", encode(presence_at(kNow - kDayMs - 1)),
              "odd name", encode(presence_at(kNow)), "odd", "{}"},
             kNow);
  CHECK(nodes.present("self", kNow) == std::vector<std::string>{"here"});
  CHECK(nodes.away("self", kNow) == std::vector<std::string>{"away"});
  CHECK(nodes.stale() == std::vector<std::string>{"old"});
  CHECK(nodes.refused() == 2);
  const auto report = nodes.report("self", kNow);
  REQUIRE(report.size() == 3);
  CHECK(report[0].name == "away");
  CHECK_FALSE(report[0].is_present);
  CHECK(report[2].is_here);
  CHECK(report[1].seen_seconds == 15);
  // A node whose clock reading is ahead of ours is here.
  nodes.read({"ahead", encode(presence_at(UINT64_MAX))}, kNow);
  CHECK(nodes.present("self", kNow) == std::vector<std::string>{"ahead"});
}

TEST_CASE("a table of nodes is bounded", "[fleet]") {
  std::vector<std::string> fields;
  for (std::size_t i = 0; i < kNodesMax + 10; ++i) {
    fields.push_back("n" + std::to_string(i));
    fields.push_back(encode(presence_at(kNow)));
  }
  NodeTable nodes;
  nodes.read(fields, kNow);
  CHECK(nodes.present("", kNow).size() == kNodesMax);
  CHECK(nodes.away("", kNow) == std::vector<std::string>{"*"});
}

TEST_CASE("nodes that are not known are named so", "[fleet]") {
  NodeTable nodes;
  CHECK(nodes.away("self", kNow) == std::vector<std::string>{"*"});
  const std::vector<std::string> fields = {"a", encode(presence_at(kNow))};
  nodes.read(fields, kNow, NodeTable::Part::kSome);
  CHECK(nodes.away("self", kNow) == std::vector<std::string>{"*"});
  nodes.read(fields, kNow);
  CHECK(nodes.is_whole());
  CHECK(nodes.away("self", kNow).empty());
}

}  // namespace
}  // namespace encore::fleet

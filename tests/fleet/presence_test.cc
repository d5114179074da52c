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

TEST_CASE("a presence tells of a filter, and of the wish for one", "[fleet]") {
  const std::string key(64, 'a');
  Presence wishing = presence_at(kNow);
  wishing.facts.filter = FilterFacts{.form = "split xxh3 m=512 k=8", .keys = "abc", .known = 9};
  wishing.wish = FilterWish{.from = "4567", .key = key};
  const std::string text = encode(wishing);
  const auto read = decode_presence(text);
  REQUIRE(read);
  CHECK(read->facts.filter == wishing.facts.filter);
  CHECK(read->wish == wishing.wish);
  // One that is malformed is left out, and the node is present.
  const auto with = [&text](std::string_view from, std::string_view to) {
    std::string changed = text;
    const auto decoded = decode_presence(changed.replace(changed.find(from), from.size(), to));
    REQUIRE(decoded);
    return *decoded;
  };
  CHECK_FALSE(with("\"known\":9", "\"known\":-9").facts.filter);
  CHECK_FALSE(with("split xxh3 m=512 k=8", std::string(65, 'x')).facts.filter);
  CHECK_FALSE(with(key, "../" + key.substr(3)).wish);
  CHECK_FALSE(with("\"4567\"", "4567").wish);
  CHECK_FALSE(decode_presence(encode(presence_at(7)))->wish);

  NodeTable nodes;
  Presence gone = wishing;
  gone.seen_ms = kNow - 15'001;
  nodes.read({"joins", text, "gone", encode(gone), "other", encode(presence_at(kNow))}, kNow);
  const auto wishes = nodes.wishes_to("4567", kNow);
  REQUIRE(wishes.size() == 1);
  CHECK(wishes[0].first == "joins");
  CHECK(wishes[0].second.key == key);
  CHECK(nodes.wishes_to("0123", kNow).empty());
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

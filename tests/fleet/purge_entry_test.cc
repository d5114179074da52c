#include "proxy/fleet/purge_entry.h"

#include "tests/catch.h"

namespace encore::fleet {
namespace {

using server::PurgeOrder;

TEST_CASE("a purge is the same behind the stream", "[fleet]") {
  PurgeEntry entry{.node = "a.example", .instance = "0123", .number = 7};
  entry.order = {.urls = {"http://a/", "http://b/"},
                 .prefixes = {"http://c/"},
                 .tags = {"x y", std::string("\0\n", 2)},
                 .all = true,
                 .soft = true,
                 .keys = {"forward:http://d/"}};
  entry.order.ban = server::BanOrder{
      .forward = true, .host = "h", .url = "^/u", .content_type = "text", .tags = {"t1", "t2"}};
  const auto fields = encode(entry);
  REQUIRE(fields);
  const auto read = decode(*fields);
  REQUIRE(read);
  CHECK(read->node == entry.node);
  CHECK(read->instance == entry.instance);
  CHECK(read->number == 7);
  CHECK(read->order.urls == entry.order.urls);
  CHECK(read->order.prefixes == entry.order.prefixes);
  CHECK(read->order.tags == entry.order.tags);
  CHECK(read->order.keys == entry.order.keys);
  CHECK(read->order.all);
  CHECK(read->order.soft);
  REQUIRE(read->order.ban);
  CHECK(read->order.ban->forward);
  CHECK(read->order.ban->host == "h");
  CHECK(read->order.ban->url == "^/u");
  CHECK(read->order.ban->content_type == "text");
  CHECK(read->order.ban->tags == entry.order.ban->tags);
}

TEST_CASE("operators may write entries by hand", "[fleet]") {
  const auto read = decode(Fields{"tag", "news"});
  REQUIRE(read);
  CHECK(read->order.tags == std::vector<std::string>{"news"});
  CHECK_FALSE(read->order.soft);
  CHECK(read->instance.empty());
}

TEST_CASE("what is wrong in an entry is named with what is accepted", "[fleet]") {
  CHECK(decode(Fields{"tags", "news"}).error().message ==
        "unknown field \"tags\"; accepted: url, prefix, tag, all, soft");
  CHECK(decode(Fields{"tag", "news", "soft", "yes"}).error().message ==
        "soft is \"yes\"; accepted: 0, 1");
}

TEST_CASE("what is no purge of ours is refused", "[fleet]") {
  const std::vector<Fields> wrong = {{},
                                     {"tag"},
                                     {"tag", ""},
                                     {"soft", "1"},
                                     {"soft", "yes", "tag", "a"},
                                     {"tag", "a", "new", "b"},
                                     {"tag", "a", "ban-new", "b"},
                                     {"tag", "a", "node", "n"},
                                     {"tag", "a", "node", "n n", "instance", "1"},
                                     {"tag", "a", "number", "-1"},
                                     {"tag", "a", "number", "1x"},
                                     {"tag", "a", "number", "18446744073709551616"},
                                     {"url", std::string(kEntryBytesMax, 'x')}};
  for (const Fields& each : wrong) {
    CAPTURE(each.size() > 1 ? each[0] : "");
    CHECK_FALSE(decode(each));
  }
  Fields many;
  for (std::size_t i = 0; i <= kEntryFieldsMax; ++i) many.insert(many.end(), {"tag", "a"});
  CHECK_FALSE(decode(many));
  many.resize(2 * kEntryFieldsMax);
  CHECK(decode(many));
}

TEST_CASE("a purge that no entry can hold is refused before it is sent", "[fleet]") {
  PurgeEntry entry{.node = "a", .instance = "0", .number = 1};
  entry.order.urls.assign(2, std::string(kEntryBytesMax / 2, 'x'));
  CHECK_FALSE(encode(entry));
  entry.order.urls.assign(1, std::string(kEntryBytesMax / 2, 'x'));
  CHECK(encode(entry));
}

TEST_CASE("an entry of a node is known by its fields, even if it is not understood", "[fleet]") {
  CHECK(is_of_a_node(Fields{"future", "1", "node", "a"}));
  CHECK_FALSE(is_of_a_node(Fields{"future", "node"}));
  CHECK_FALSE(is_of_a_node(Fields{"future", "1"}));
}

TEST_CASE("purges of a batch are joined by softness", "[fleet]") {
  const std::vector<PurgeOrder> orders = {{.urls = {"a"}},
                                          {.tags = {"t"}, .soft = true},
                                          {.prefixes = {"p"}},
                                          {.ban = server::BanOrder{.url = "u"}},
                                          {.urls = {"b"}, .keys = {"k"}}};
  auto joined = merged(orders);
  REQUIRE(joined.size() == 3);
  CHECK_FALSE(joined[0].soft);
  CHECK(joined[0].urls == std::vector<std::string>{"a", "b"});
  CHECK(joined[0].prefixes == std::vector<std::string>{"p"});
  CHECK(joined[0].keys == std::vector<std::string>{"k"});
  CHECK(joined[1].soft);
  CHECK(joined[1].tags == std::vector<std::string>{"t"});
  CHECK(joined[2].ban);
  CHECK(merged({}).empty());
  const std::vector<PurgeOrder> all = {{.tags = {"t"}, .soft = true}, {.all = true}};
  joined = merged(all);
  REQUIRE(joined.size() == 1);
  CHECK(joined[0].all);
  CHECK_FALSE(joined[0].soft);
}

TEST_CASE("a ban whose parts would be other parts on a disk is refused", "[fleet]") {
  for (const char* name : {"ban-host", "ban-url", "ban-type", "ban-tag"}) {
    CAPTURE(name);
    CHECK(decode(Fields{name, "a"}));
    CHECK_FALSE(decode(Fields{name, "a\nb"}));
  }
}

TEST_CASE("unknown purges are validated, whatever else is soft", "[fleet]") {
  PurgeEntry entry;
  entry.order = server::validate_all();
  const auto fields = encode(entry);
  REQUIRE(fields);
  CHECK(*fields == Fields{"all", "1", "soft", "1", "validate", "1"});
  const auto read = decode(*fields);
  REQUIRE(read);
  CHECK(read->order.validate);
  CHECK_FALSE(decode(Fields{"tag", "a", "soft", "1", "validate", "1"}));
  CHECK_FALSE(decode(Fields{"all", "1", "validate", "1"}));
  const std::vector<PurgeOrder> orders = {{.all = true, .soft = true},
                                          server::validate_all(),
                                          {.tags = {"t"}},
                                          {.tags = {"s"}, .soft = true}};
  const auto joined = merged(orders);
  REQUIRE(joined.size() == 2);
  CHECK(joined[0].tags == std::vector<std::string>{"t"});
  CHECK(joined[1].all);
  CHECK(joined[1].validate);
}

}  // namespace
}  // namespace encore::fleet

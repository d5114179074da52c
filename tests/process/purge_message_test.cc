#include "proxy/process/purge_message.h"

#include <random>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

// Draws each part of an order on its own, so that no two have the same content.
class Draw {
 public:
  bool yes() { return random_() % 2 == 0; }
  std::string text() { return "t" + std::to_string(++texts_); }
  std::vector<std::string> list() {
    std::vector<std::string> texts;
    for (std::uint64_t left = random_() % 4; left != 0; --left) texts.push_back(text());
    return texts;
  }
  std::uint64_t number() { return random_(); }

 private:
  std::mt19937_64 random_{1};
  std::uint64_t texts_ = 0;
};

TEST_CASE("a purge order arrives at another process as it was sent", "[process][purge]") {
  Draw draw;
  for (int i = 0; i < 200; ++i) {
    PurgeOrder order{.urls = draw.list(), .prefixes = draw.list(), .tags = draw.list()};
    order.all = draw.yes();
    order.soft = draw.yes();
    order.keys = draw.list();
    if (draw.yes()) {
      order.ban = BanOrder{.forward = draw.yes(),
                           .host = draw.yes() ? draw.text() : "",
                           .url = draw.text(),
                           .content_type = draw.text(),
                           .tags = draw.list()};
    }
    const auto read = read_purge(purge_message(order));
    REQUIRE(read);
    CHECK(read->urls == order.urls);
    CHECK(read->prefixes == order.prefixes);
    CHECK(read->tags == order.tags);
    CHECK(read->keys == order.keys);
    CHECK(read->all == order.all);
    CHECK(read->soft == order.soft);
    REQUIRE(read->ban.has_value() == order.ban.has_value());
    if (!order.ban) continue;
    CHECK(read->ban->forward == order.ban->forward);
    CHECK(read->ban->host == order.ban->host);
    CHECK(read->ban->url == order.ban->url);
    CHECK(read->ban->content_type == order.ban->content_type);
    CHECK(read->ban->tags == order.ban->tags);
  }
}

TEST_CASE("a purge of a later version, with an unknown condition, is refused", "[process][purge]") {
  for (const std::uint64_t flags : {std::uint64_t{8}, std::uint64_t{9}, ~std::uint64_t{0}}) {
    upgrade::Message message{.type = upgrade::MessageType::kPurge};
    message.add_number(upgrade::Field::kFlags, flags).add(upgrade::Field::kUrl, "http://a/");
    CHECK_FALSE(read_purge(message));
  }
  CHECK_FALSE(read_purge(upgrade::Message{.type = upgrade::MessageType::kPurge}));
}

TEST_CASE("a purge's result arrives at another process as it was sent", "[process][purge]") {
  Draw draw;
  for (int i = 0; i < 100; ++i) {
    PurgeResult result{.count = draw.number(), .lazily = draw.yes()};
    if (draw.yes()) result.durable = fail(draw.text());
    if (draw.yes()) result.refusal = draw.text();
    const std::uint64_t number = draw.number();
    const upgrade::Message message = purged_message(number, result);
    CHECK(message.number(upgrade::Field::kNumber) == number);
    const PurgeResult read = read_purged(message);
    CHECK(read.count == result.count);
    CHECK(read.lazily == result.lazily);
    CHECK(read.refusal == result.refusal);
    REQUIRE(read.durable.has_value() == result.durable.has_value());
    if (!result.durable) CHECK(read.durable.error().message == result.durable.error().message);
  }
}

TEST_CASE("a purge that is validated is a hard one for processes of earlier versions",
          "[process][purge]") {
  const auto read = read_purge(purge_message(validate_all()));
  REQUIRE(read);
  CHECK(read->all);
  CHECK_FALSE(read->soft);
}

}  // namespace
}  // namespace encore::server

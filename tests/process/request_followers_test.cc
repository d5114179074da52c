// Operators that follow requests: answered when there is something to say, or after a while.
#include "proxy/process/request_followers.h"

#include <optional>
#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

MonotonicTime at(int seconds) { return MonotonicTime(std::chrono::seconds(seconds)); }

struct Answer {
  std::optional<AdminResponse> response;
  AdminReply reply() {
    return AdminReply([this](AdminResponse&& sent) { response = std::move(sent); });
  }
};

TEST_CASE("who follows is answered when a request has ended", "[process][followers]") {
  RequestTap tap;
  RequestFollowers followers(tap);
  CHECK_FALSE(tap.is_on());
  tap.add(R"({"n":0})");
  Answer answer;
  followers.add(std::nullopt, answer.reply(), at(0));
  CHECK(tap.is_on());
  followers.look(at(1));
  CHECK_FALSE(answer.response.has_value());
  tap.add("{\"n\":1}\n");
  tap.add("{\"n\":2}\n");
  followers.look(at(2));
  REQUIRE(answer.response.has_value());
  CHECK(answer.response->body == "{\"next\":3,\"dropped\":0,\"records\":[{\"n\":1},{\"n\":2}]}\n");
  Answer again;
  followers.add(2, again.reply(), at(3));
  REQUIRE(again.response.has_value());
  CHECK(again.response->body == "{\"next\":3,\"dropped\":0,\"records\":[{\"n\":2}]}\n");
}

TEST_CASE("who has followed the process before this one gets the next record",
          "[process][followers][upgrade]") {
  RequestTap tap;
  RequestFollowers followers(tap);
  tap.add(R"({"n":0})");
  Answer answer;
  followers.add(57, answer.reply(), at(0));
  CHECK_FALSE(answer.response.has_value());
  tap.add(R"({"n":1})");
  followers.look(at(1));
  REQUIRE(answer.response.has_value());
  CHECK(answer.response->body == "{\"next\":2,\"dropped\":0,\"records\":[{\"n\":1}]}\n");
}

TEST_CASE("where nothing comes the answer is empty, and records stop being made",
          "[process][followers]") {
  RequestTap tap;
  RequestFollowers followers(tap);
  Answer answer;
  followers.add(std::nullopt, answer.reply(), at(0));
  followers.look(at(9));
  CHECK_FALSE(answer.response.has_value());
  followers.look(at(10));
  REQUIRE(answer.response.has_value());
  CHECK(answer.response->body == "{\"next\":0,\"dropped\":0,\"records\":[]}\n");
  followers.look(at(19));
  CHECK(tap.is_on());
  followers.look(at(20));
  CHECK_FALSE(tap.is_on());
}

TEST_CASE("no more than a number of operators follow", "[process][followers]") {
  RequestTap tap;
  RequestFollowers followers(tap);
  std::vector<Answer> answers(RequestFollowers::kMost + 1);
  for (Answer& each : answers) followers.add(std::nullopt, each.reply(), at(0));
  for (std::size_t i = 0; i < RequestFollowers::kMost; ++i)
    CHECK_FALSE(answers[i].response.has_value());
  REQUIRE(answers.back().response.has_value());
  CHECK(answers.back().response->status == 503);
  followers.end();
  CHECK(answers.front().response->status == 200);
}

TEST_CASE("at the end all are answered, and later ones at once", "[process][followers]") {
  RequestTap tap;
  RequestFollowers followers(tap);
  Answer waiting;
  Answer later;
  followers.add(std::nullopt, waiting.reply(), at(0));
  followers.end();
  CHECK(waiting.response.has_value());
  followers.add(std::nullopt, later.reply(), at(1));
  CHECK(later.response.has_value());
  CHECK_FALSE(tap.is_on());
}

}  // namespace
}  // namespace encore::server

// Challenges of ACME: which requests are for them, and which files answer them.
#include "proxy/intake/challenge_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "tests/catch.h"
#include "tests/intake/intake_world.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

using config::Mode;

constexpr std::string_view kThumbprint = "9jg46WB3rR_AHD-EBXdN7cBkH1WOu0tA3M9fm21mqTI";

std::string authorization(std::string_view token) {
  return std::string(token) + "." + std::string(kThumbprint);
}

std::optional<std::string_view> name_in(std::string_view target, Mode mode = Mode::kReverse,
                                        http::Method method = http::Method::kGet) {
  http::RequestHead head;
  head.method = method;
  head.target = target;
  return challenge_name(head, mode);
}

}  // namespace

TEST_CASE("a GET or HEAD below the path of challenges is for one", "[intake][acme]") {
  CHECK(name_in("/.well-known/acme-challenge/abc") == "abc");
  CHECK(name_in("/.well-known/acme-challenge/abc?x=/y") == "abc");
  CHECK(name_in("/.well-known/acme-challenge/") == "");
  CHECK(name_in("/.well-known/acme-challenge/../a") == "../a");
  CHECK(name_in("http://a.test/.well-known/acme-challenge/abc") == "abc");
  CHECK(name_in("HTTP://a.test:80/.well-known/acme-challenge/abc") == "abc");
  CHECK(name_in("/.well-known/acme-challenge/abc", Mode::kReverse, http::Method::kHead) == "abc");
  for (const char* target :
       {"/", "/.well-known/acme-challenge", "/.well-known/acme-challengeX/a", "*", "",
        "/x/.well-known/acme-challenge/a", "http://a.test", "http://a.test?/.well-known/x",
        "https://a.test/.well-known/acme-challenge/a", "a.test:443", "http://"}) {
    CAPTURE(target);
    CHECK_FALSE(name_in(target));
  }
  for (const http::Method method :
       {http::Method::kPost, http::Method::kPut, http::Method::kOther, http::Method::kConnect}) {
    CHECK_FALSE(name_in("/.well-known/acme-challenge/abc", Mode::kReverse, method));
  }
}

TEST_CASE("to a forward listener a challenge is in origin form", "[intake][acme]") {
  CHECK(name_in("/.well-known/acme-challenge/abc", Mode::kForward) == "abc");
  CHECK_FALSE(name_in("http://a.test/.well-known/acme-challenge/abc", Mode::kForward));
}

TEST_CASE("a key authorization is read from its file", "[intake][acme]") {
  const TemporaryDirectory place;
  const std::string token = "LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0";
  CHECK_FALSE(read_challenge(place.path(), token));
  write_text(place / token, authorization(token));
  CHECK(read_challenge(place.path(), token) == authorization(token));
  write_text(place / token, authorization(token) + " \r\n");
  CHECK(read_challenge(place.path(), token) == authorization(token) + " \r\n");
  CHECK_FALSE(read_challenge(place / "nowhere", token));
  CHECK_FALSE(read_challenge(place / token, token));  // no directory
}

TEST_CASE("only a token names a file", "[intake][acme]") {
  const TemporaryDirectory place;
  std::filesystem::create_directory(place / "in");
  write_text(place / "out", authorization("out"));
  for (const char* name : {"a.b", "..", ".", "a b", "a%62", "a~", ".hidden"}) {
    CAPTURE(name);
    if (std::string_view(name) != "." && std::string_view(name) != "..") {
      write_text((place / "in/") + name, authorization(name));
    }
    CHECK_FALSE(read_challenge(place / "in", name));
  }
  for (const char* name : {"", "/", "../out", "sub/out", "/etc/passwd"}) {
    CHECK_FALSE(read_challenge(place / "in", name));
  }
  CHECK_FALSE(read_challenge(place / "in", std::string_view("a\0b", 3)));
  const std::string longest(kChallengeTokenMax, 'a');
  write_text((place / "in/") + longest, authorization(longest));
  CHECK(read_challenge(place / "in", longest));
  write_text((place / "in/a") + longest, authorization("a" + longest));
  CHECK_FALSE(read_challenge(place / "in", "a" + longest));
}

TEST_CASE("what is no key authorization of that name stays in its directory", "[intake][acme]") {
  const TemporaryDirectory place;
  const std::string token = "token";
  for (const std::string& text :
       {std::string(), std::string("-----BEGIN PRIVATE KEY-----\n"), std::string("token"),
        std::string("token."), std::string("token. \n"), std::string("token.a.b"),
        std::string("token.a b"), std::string("token.a\nsecret"), authorization("other"),
        authorization("tokens"), " " + authorization(token)}) {
    CAPTURE(text);
    write_text(place / token, text);
    CHECK_FALSE(read_challenge(place.path(), token));
  }
  std::string large = authorization(token);
  large.resize(kChallengeBytesMax, 'a');
  write_text(place / token, large);
  CHECK(read_challenge(place.path(), token) == large);
  write_text(place / token, large + "a");
  CHECK_FALSE(read_challenge(place.path(), token));
}

TEST_CASE("no link, directory or FIFO is opened", "[intake][acme]") {
  const TemporaryDirectory place;
  write_text(place / "real", authorization("link"));
  std::filesystem::create_symlink(place / "real", place / "link");
  CHECK_FALSE(read_challenge(place.path(), "link"));
  std::filesystem::create_directory(place / "folder");
  CHECK_FALSE(read_challenge(place.path(), "folder"));
  // Nobody writes to it: a blocking open() would not return.
  REQUIRE(::mkfifo((place / "fifo").c_str(), 0600) == 0);
  CHECK_FALSE(read_challenge(place.path(), "fifo"));
}

TEST_CASE("a directory that cannot be read is said to be none", "[intake][acme]") {
  const TemporaryDirectory place;
  CHECK(check_challenge_directory("").has_value());
  CHECK(check_challenge_directory(place.path()).has_value());
  const auto missing = check_challenge_directory(place / "none");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().message.starts_with("acme.challenge_directory: \"" + (place / "none")));
  write_text(place / "file", "");
  CHECK_FALSE(check_challenge_directory(place / "file").has_value());
}

TEST_CASE("a challenge is answered before all that a listener has settings for", "[intake][acme]") {
  const TemporaryDirectory place;
  write_text(place / "users", "");
  write_text(place / "token", authorization("token"));
  IntakeWorld world([&](config::Config& config) {
    config.acme.challenge_directory = place.path();
    config.listen[0].deny_clients = {"0.0.0.0/0"};
    config.listen[0].users_file = place / "users";
    config.listen[0].redirect_https = true;
    config.rule = {{}};
    config.rule[0].redirect = "https://elsewhere.test/";
    config.origin[0].host = "h";
  });
  constexpr std::string_view kChallenge =
      "GET /.well-known/acme-challenge/token HTTP/1.1\nHost: any\n";
  const auto& answered = world.take<Intake::Refuse>(kChallenge).refusal;
  CHECK(answered.status == 200);
  CHECK(answered.outcome == Outcome::kChallenge);
  const Intake::Refused whom{
      .listener = world.listener, .identity = *world.identity, .view = &world.view};
  const Intake::Reply reply = world.intake.reply_to(answered, whom);
  CHECK(reply.text.body == authorization("token"));
  CHECK(reply.text.head.contains("Content-Type: application/octet-stream\r\n"));
  CHECK(reply.text.head.contains("Cache-Control: no-store\r\n"));
  CHECK(world.refused("GET /.well-known/acme-challenge/other HTTP/1.1\nHost: h\n") ==
        "404 no-challenge");
  // By TLS and with other methods a request takes the usual way.
  CHECK(world.refused("POST /.well-known/acme-challenge/token HTTP/1.1\nHost: h\n") ==
        "403 client-not-allowed");
  world.is_tls = true;
  CHECK(world.refused("GET /.well-known/acme-challenge/token HTTP/1.1\nHost: h\n") ==
        "403 client-not-allowed");
}

TEST_CASE("without a directory challenges are the origin's", "[intake][acme]") {
  IntakeWorld world;
  (void)world.take<Intake::Start>("GET /.well-known/acme-challenge/token HTTP/1.1\nHost: h\n");
}

}  // namespace encore::server

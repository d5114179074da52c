// Credentials of a connection's requests against the files of their listener.
#include "proxy/intake/login_check.h"

#include <memory>
#include <string>
#include <variant>

#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

// The hashes of "secret"; SHA-256 of "abc".
constexpr std::string_view kUsers =
    "ann:$2y$04$o7a32LtrLk7cLYVa2tWvvuNuGjv5ZEqlqmcmgXtp43nGtcdDlIgTm\n";
constexpr std::string_view kTokens =
    "ci:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n";

class Logins {
 public:
  explicit Logins(std::uint32_t failures = 0) {
    write_text(directory_ / "users", std::string(kUsers));
    write_text(directory_ / "tokens", std::string(kTokens));
    config::Listen listen;
    listen.mode = config::Mode::kReverse;
    listen.users_file = directory_ / "users";
    listen.tokens_file = directory_ / "tokens";
    policy = ListenerPolicy::make(listen).value();
    if (failures != 0) {
      failures_ = std::make_shared<TokenBuckets>(
          TokenBuckets::Options{.rate = 0.001, .burst = failures, .entries = 10});
    }
  }
  // Checks a request with this Authorization; empty: it has none.
  auto check(LoginCheck& logins, std::string_view value) {
    http::Fields fields;
    if (!value.empty()) fields.add("Authorization", value);
    return logins.check({.loop = *loop, .passwords = passwords, .stats = stats},
                        {.policy = *policy,
                         .fields = fields,
                         .field = http::FieldId::kAuthorization,
                         .client = client_,
                         .failures = failures_});
  }
  std::string outcome(LoginCheck& logins, std::string_view value) {
    const auto found = check(logins, value);
    if (std::holds_alternative<LoginCheck::Waits>(found)) return "waits";
    if (std::holds_alternative<LoginCheck::Right>(found)) return "right";
    const Refusal& refusal = std::get<Refusal>(found);
    return std::to_string(refusal.status) + " " + std::string(refusal.detail);
  }
  void run_until_resumed() {
    while (resumed == 0) loop->turn();
    resumed = 0;
  }

  std::unique_ptr<net::Loop> loop = std::move(*net::Loop::create());
  WorkerStats stats;
  PasswordChecks passwords;
  std::unique_ptr<const ListenerPolicy> policy;
  int resumed = 0;

 private:
  const TemporaryDirectory directory_;
  const net::Address client_ = net::Address::parse_ip("192.0.2.1", 1).value();
  std::shared_ptr<TokenBuckets> failures_;
};

constexpr std::string_view kAnn = "Basic YW5uOnNlY3JldA==";     // ann:secret
constexpr std::string_view kWrong = "Basic YW5uOndyb25n";       // ann:wrong
constexpr std::string_view kNobody = "Basic Ym9iOnNlY3JldA==";  // bob:secret

}  // namespace

TEST_CASE("a password is checked elsewhere while its request waits", "[intake][login]") {
  Logins world;
  LoginCheck logins([&] { ++world.resumed; });
  CHECK(world.outcome(logins, kAnn) == "waits");
  // It is the same check that it waits for.
  CHECK(world.outcome(logins, kAnn) == "waits");
  world.run_until_resumed();
  CHECK(world.outcome(logins, kAnn) == "right");
  CHECK(logins.user() == "ann");
  CHECK_FALSE(logins.mark().empty());
  CHECK(world.stats.logins_right.get() == 1);
  logins.clear();
  CHECK(logins.user().empty());
  CHECK(logins.mark().empty());
  // It is remembered, for other connections too.
  LoginCheck other([] {});
  CHECK(world.outcome(other, kAnn) == "right");
}

TEST_CASE("wrong credentials and none are refused alike", "[intake][login]") {
  Logins world;
  LoginCheck logins([&] { ++world.resumed; });
  CHECK(world.outcome(logins, "") == "401 no-credentials");
  CHECK(world.stats.logins_failed.get() == 0);
  for (const std::string_view value : {kWrong, kNobody}) {
    CHECK(world.outcome(logins, value) == "waits");
    world.run_until_resumed();
    CHECK(world.outcome(logins, value) == "401 wrong-credentials");
    CHECK(logins.user().empty());
  }
  CHECK(world.outcome(logins, "Bearer abd") == "401 wrong-credentials");
  CHECK(world.outcome(logins, "Digest a") == "401 wrong-credentials");
  CHECK(world.stats.logins_failed.get() == 4);
  const Refusal refusal = std::get<Refusal>(world.check(logins, ""));
  CHECK(refusal.fields == world.policy->challenge);
  CHECK(refusal.further == Refusal::Further::kMayStay);
}

TEST_CASE("a token is found at once", "[intake][login]") {
  Logins world;
  LoginCheck logins([] {});
  CHECK(world.outcome(logins, "Bearer abc") == "right");
  CHECK(logins.user() == "ci");
}

TEST_CASE("failed logins are limited, right ones cost nothing", "[intake][login]") {
  Logins world(1);
  LoginCheck logins([&] { ++world.resumed; });
  for (int i = 0; i < 3; ++i) {
    const std::string value = i == 0 ? std::string(kAnn) : "Bearer abc";
    if (i == 0) {
      CHECK(world.outcome(logins, value) == "waits");
      world.run_until_resumed();
    }
    CHECK(world.outcome(logins, value) == "right");
  }
  CHECK(world.outcome(logins, "Bearer abd") == "401 wrong-credentials");
  CHECK(world.outcome(logins, "Bearer abd") == "429 failed-logins");
  CHECK(world.outcome(logins, kWrong) == "429 failed-logins");
  CHECK(world.stats.logins_limited.get() == 2);
  CHECK(world.outcome(logins, kAnn) == "right");
}

TEST_CASE("a check outlives the connection that waits for it", "[intake][login]") {
  Logins world;
  LoginCheck other([&] { ++world.resumed; });
  {
    LoginCheck gone([&] { world.resumed += 100; });
    CHECK(world.outcome(gone, kAnn) == "waits");
    CHECK(world.outcome(other, kAnn) == "waits");
  }
  while (world.resumed == 0) world.loop->turn();
  CHECK(world.resumed == 1);
  CHECK(world.outcome(other, kAnn) == "right");
}

}  // namespace encore::server

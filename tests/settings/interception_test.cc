#include "proxy/settings/interception.h"

#include <sys/stat.h>

#include "proxy/ca/making.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

constexpr WallTime kNow{std::chrono::seconds(1'800'000'000)};
constexpr MonotonicTime kConnectTime{std::chrono::hours(1)};

// An authority in files of its own.
class Authority {
 public:
  explicit Authority(const std::vector<std::string>& hosts) {
    const auto made = ca::make_authority(
        {.name = "test", .hosts = hosts, .any_host = hosts.empty(), .now = kNow});
    REQUIRE(made.has_value());
    write_text(directory_ / "ca.crt", made->certificate);
    write_text(directory_ / "ca.key", made->key);
    REQUIRE(::chmod((directory_ / "ca.key").c_str(), 0600) == 0);
  }
  config::Intercept intercepting(const std::vector<std::string>& hosts) const {
    config::Intercept intercept;
    intercept.ca_certificate = directory_ / "ca.crt";
    intercept.ca_key = directory_ / "ca.key";
    intercept.hosts = hosts;
    return intercept;
  }

 private:
  TemporaryDirectory directory_;
};

std::shared_ptr<const Interception> made(const config::Intercept& intercept,
                                         const Interception* before = nullptr) {
  auto interception = Interception::create(intercept, before, kNow);
  if (!interception) UNSCOPED_INFO(interception.error().message);
  REQUIRE(interception.has_value());
  return *interception;
}

std::string refused(const config::Intercept& intercept, WallTime now = kNow) {
  const auto interception = Interception::create(intercept, nullptr, now);
  REQUIRE_FALSE(interception.has_value());
  return interception.error().message;
}

net::Address intercepted_client(const std::string& text) {
  return *net::Address::parse_ip(text, 1);
}

}  // namespace

TEST_CASE("Without hosts there is no interception", "[settings][intercept]") {
  const Authority authority({"a.example"});
  CHECK(made(config::Intercept()) == nullptr);
  CHECK(made(authority.intercepting({})) == nullptr);
  CHECK(made(authority.intercepting({"a.example"})) != nullptr);
}

TEST_CASE("An authority that cannot be used is refused, with its file", "[settings][intercept]") {
  const Authority authority({"a.example", "b.example"});
  const config::Intercept good = authority.intercepting({"a.example", "*.b.example"});
  CHECK(made(good) != nullptr);
  CHECK(refused(authority.intercepting({"a.example", "c.example"})) ==
        good.ca_certificate + ": may not sign for \"c.example\" of intercept.hosts; accepted: " +
            "a.example, b.example, and hosts below");
  CHECK(refused(authority.intercepting({"*"})).find("may not sign for \"*\"") != std::string::npos);
  CHECK(refused(authority.intercepting({"*.example"})).find("\"*.example\"") != std::string::npos);
  CHECK(refused(good, kNow + std::chrono::days(3650)) ==
        good.ca_certificate +
            ": is good from 2027-01-14 to 2037-01-12; accepted: one that is good " +
            "now, as by encore ca renew");
  CHECK(refused(good, kNow - std::chrono::days(2)).find("is good from") != std::string::npos);
  config::Intercept wrong = good;
  wrong.ca_key = wrong.ca_certificate;
  REQUIRE(::chmod(wrong.ca_key.c_str(), 0600) == 0);
  CHECK(refused(wrong).find("contains no PEM key") != std::string::npos);
  const auto key_at_fault = [](const config::Intercept& intercept) {
    return std::string(Interception::create(intercept, nullptr, kNow).error().key);
  };
  CHECK(key_at_fault(wrong) == "intercept.ca_key");
  wrong.ca_key += ".none";
  CHECK(key_at_fault(wrong) == "intercept.ca_key");
  wrong.ca_certificate = wrong.ca_key;
  CHECK(key_at_fault(wrong) == "intercept.ca_certificate");
  CHECK(key_at_fault(authority.intercepting({"*"})) == "intercept.ca_certificate");
  CHECK(made(Authority({}).intercepting({"*"})) != nullptr);
}

TEST_CASE("There is a session for what the authority may sign for", "[settings][intercept]") {
  const Authority authority({"a.example"});
  const auto interception = made(authority.intercepting({"a.example"}));
  CHECK(interception->session("a.example", InterceptHttp2::kOn, kNow) != nullptr);
  CHECK(interception->session("x.a.example", InterceptHttp2::kOn, kNow) != nullptr);
  CHECK(interception->session("b.example", InterceptHttp2::kOn, kNow) == nullptr);
  CHECK(interception->session("a.example", InterceptHttp2::kOn, kNow + std::chrono::days(3650)) ==
        nullptr);
  CHECK(interception->mint().made() == 2);
}

TEST_CASE("A reload keeps what was signed and who rejected it", "[settings][intercept]") {
  const Authority authority({"a.example"});
  const auto before = made(authority.intercepting({"a.example"}));
  REQUIRE(before->session("a.example", InterceptHttp2::kOn, kNow) != nullptr);
  for (int i = 0; i < 3; ++i)
    before->note_reject(intercepted_client("10.0.0.1"), "a.example", kConnectTime);
  const auto after = made(authority.intercepting({"a.example", "x.a.example"}), before.get());
  CHECK(after->mint().kept() == 1);
  const auto at = [&](const Interception& interception, const char* who, const char* host) {
    return interception.at_connect(intercepted_client(who), host, 443, false, kConnectTime);
  };
  CHECK(at(*after, "10.0.0.1", "a.example") == Splice::kRejected);
  CHECK(at(*after, "10.0.0.2", "a.example") == Splice::kNone);
  CHECK(at(*before, "10.0.0.2", "x.a.example") == Splice::kNotNamed);
  CHECK(at(*after, "10.0.0.2", "x.a.example") == Splice::kNone);
  // Another authority begins anew, but knows who rejects.
  const Authority other({"a.example"});
  const auto replaced = made(other.intercepting({"a.example"}), after.get());
  CHECK(replaced->mint().kept() == 0);
  CHECK(at(*replaced, "10.0.0.1", "a.example") == Splice::kRejected);
}

TEST_CASE("Who rejects may be left to fail", "[settings][intercept]") {
  const Authority authority({"a.example"});
  config::Intercept intercept = authority.intercepting({"a.example"});
  intercept.on_client_reject = config::ClientReject::kFail;
  const auto interception = made(intercept);
  for (int i = 0; i < 3; ++i)
    interception->note_reject(intercepted_client("10.0.0.1"), "a.example", kConnectTime);
  CHECK(interception->at_connect(intercepted_client("10.0.0.1"), "a.example", 443, false,
                                 kConnectTime) == Splice::kNone);
  CHECK(interception->rejected().paused(kConnectTime) == 1);
}

}  // namespace encore::server

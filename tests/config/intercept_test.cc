#include <string>

#include "config/derive.h"
#include "config/load.h"
#include "tests/catch.h"

using namespace encore;
using namespace encore::config;

namespace {

const std::string kFiles = "[intercept]\nca_certificate = \"ca.crt\"\nca_key = \"ca.key\"\n";

Result<Config> read(const std::string& text) { return parse_config(text, "encore.toml", {}); }

std::string refused(const std::string& text) {
  const auto config = read(text);
  CAPTURE(text);
  REQUIRE_FALSE(config.has_value());
  return config.error().message;
}

}  // namespace

TEST_CASE("what is no number in a list of numbers is shown", "[config][intercept]") {
  CHECK(refused("[intercept]\nports = [\"443\"]\n") ==
        "encore.toml:2:9: intercept.ports: \"443\" is not a whole number; accepted: a list of "
        "numbers, 1 .. 65535");
}

TEST_CASE("Nothing is decrypted that is not named", "[config][intercept]") {
  CHECK_FALSE(read("")->intercept.is_on());
  CHECK_FALSE(read(kFiles)->intercept.is_on());
  CHECK_FALSE(read("[intercept]\nhosts = [\"a.example\"]\n")->intercept.is_on());
  const auto on = read(kFiles + "hosts = [\"A.example\", \"*.b.example\"]\n");
  REQUIRE(on.has_value());
  CHECK(on->intercept.is_on());
  CHECK(on->intercept.hosts == std::vector<std::string>{"a.example", "*.b.example"});
  CHECK(on->intercept.ports == std::vector<std::uint64_t>{443});
  CHECK(on->intercept.on_client_reject == ClientReject::kSplice);
}

TEST_CASE("An authority comes with its key", "[config][intercept]") {
  CHECK(refused("[intercept]\nca_key = \"ca.key\"\n") ==
        "encore.toml:2:10: intercept.ca_key: without intercept.ca_certificate; accepted: both or "
        "none");
  CHECK(refused("[intercept]\nca_certificate = \"ca.crt\"\n")
            .find("intercept.ca_certificate: without intercept.ca_key") != std::string::npos);
}

TEST_CASE("All hosts are decrypted only where that is said twice", "[config][intercept]") {
  CHECK(refused(kFiles + "hosts = [\"*\"]\n").find("intercept.any_host") != std::string::npos);
  const auto all = read(kFiles + "hosts = [\"*\"]\nany_host = true\n");
  REQUIRE(all.has_value());
  CHECK(all->intercept.is_on());
}

TEST_CASE("No address is decrypted", "[config][intercept]") {
  for (const char* const host : {"127.0.0.1", "[::1]", "10.1", "2130706433", "*.1.2.3.4", "a b"}) {
    const std::string said = refused(kFiles + "hosts = [\"" + host + "\"]\n");
    CAPTURE(said);
    CHECK(said.find("encore.toml:4:") == 0);
    CHECK(said.find("accepted: a list of up to 4096: names, as") != std::string::npos);
  }
}

TEST_CASE("What is decrypted needs the rest of the configuration", "[config][intercept]") {
  const std::string host = "hosts = [\"a.example\"]\n";
  CHECK(refused(kFiles + host + "[upstream]\ntls_verify = false\n") ==
        "encore.toml:6:14: upstream.tls_verify: false, but intercept.hosts is not empty; accepted: "
        "true");
  CHECK(read(kFiles + "[upstream]\ntls_verify = false\n").has_value());
  CHECK(refused(kFiles + host + "ports = [443, 9443]\n") ==
        "encore.toml:5:9: intercept.ports: 9443; accepted: ports of forward.connect_ports");
  CHECK(read(kFiles + host + "ports = [443, 9443]\n[forward]\nconnect_ports = [443, 9443]\n")
            .has_value());
  CHECK(refused(kFiles + host + "[[listen]]\nmode = \"reverse\"\n[[origin]]\nhost = \"*\"\n")
            .find("without a forward listener") != std::string::npos);
}

TEST_CASE("--check-config says what is decrypted", "[config][intercept]") {
  const auto report = [](const std::string& text) { return check_report(*read(text), 1); };
  CHECK(report("").find("decrypted") == std::string::npos);
  const std::string said =
      report(kFiles + "hosts = [\"*.a.example\", \"b.example\"]\nnever = [\"bank.a.example\"]\n");
  CAPTURE(said);
  CHECK(said.find("CONNECT to *.a.example, b.example at port 443, never bank.a.example\n") !=
        std::string::npos);
  CHECK(said.find("note: the proxy reads all traffic of clients") != std::string::npos);
  CHECK(report("[intercept]\nhosts = [\"a.example\"]\n").find("has no effect") !=
        std::string::npos);
}

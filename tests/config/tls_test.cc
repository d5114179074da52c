#include "config/dump.h"
#include "config/load.h"
#include "tests/catch.h"

namespace encore::config {
namespace {

constexpr const char* kReverse =
    "[[origin]]\nhost = \"*\"\n[[listen]]\naddress = \"127.0.0.1:8443\"\nmode = \"reverse\"\n";

Config good_reverse(const std::string& keys) {
  auto config = parse_config(kReverse + keys, "t.toml");
  INFO((config ? std::string() : config.error().message));
  REQUIRE(config.has_value());
  return *std::move(config);
}

std::string reverse_fault(const std::string& keys) {
  const auto config = parse_config(kReverse + keys, "t.toml");
  REQUIRE_FALSE(config.has_value());
  return config.error().message;
}

bool says(const std::string& message, std::string_view what) {
  UNSCOPED_INFO(message);
  return message.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("pairs for TLS are tables in a list, and are dumped as such", "[config][tls]") {
  const Config config = good_reverse(
      "tls = [{certificate = \"a b.pem\", key = \"a=\\\"1\\\".key\"},\n"
      "       {key = \"b.key\", ocsp = \"b.der\", certificate = \"b.pem\"}]\n");
  const auto& tls = config.listen[0].tls;
  REQUIRE(tls.size() == 2);
  CHECK(tls[0]->certificate == "a b.pem");
  CHECK(tls[0]->key == "a=\"1\".key");
  CHECK(tls[0]->ocsp.empty());
  CHECK(tls[1]->certificate == "b.pem");
  CHECK(tls[1]->key == "b.key");
  CHECK(tls[1]->ocsp == "b.der");
  const std::string text = dump_config(config);
  CHECK(says(text,
             "tls = [{certificate = \"a b.pem\", key = \"a=\\\"1\\\".key\"}, {certificate = "
             "\"b.pem\", key = \"b.key\", ocsp = \"b.der\"}]"));
  const auto again = parse_config(text, "t.toml");
  REQUIRE(again.has_value());
  CHECK(*again == config);
}

TEST_CASE("a pair says what happens while its files are missing", "[config][tls]") {
  const auto missing = [](const std::string& value) {
    return "tls = [{certificate = \"a\", key = \"b\", missing = \"" + value + "\"}]\n";
  };
  CHECK(good_reverse("tls = [{certificate = \"a\", key = \"b\"}]\n").listen[0].tls[0]->missing ==
        MissingPair::kError);
  CHECK(good_reverse(missing("error")).listen[0].tls[0]->missing == MissingPair::kError);
  const Config config = good_reverse(missing("self-signed"));
  CHECK(config.listen[0].tls[0]->missing == MissingPair::kSelfSigned);
  CHECK(says(dump_config(config), missing("self-signed")));
  CHECK(says(reverse_fault(missing("acme")),
             "has a missing that is neither \"error\" nor \"self-signed\""));
}

TEST_CASE("files are checked at an interval of a tenth of a second or more, or never",
          "[config][tls]") {
  const std::string pair = "tls = [{certificate = \"a\", key = \"b\"}]\ntls_check_interval = ";
  CHECK(good_reverse(pair + "\"100ms\"\n").listen[0].tls_check_interval ==
        std::chrono::milliseconds(100));
  CHECK(good_reverse(pair + "\"0s\"\n").listen[0].tls_check_interval.count() == 0);
  CHECK(says(reverse_fault(pair + "\"99ms\"\n"), "listen.0.tls_check_interval: "));
  CHECK(says(reverse_fault("tls_check_interval = \"5s\"\n"), "without tls"));
}

TEST_CASE("what is no list of tables is said to be none", "[config][tls]") {
  constexpr std::string_view kAccepted =
      "; accepted: a list of up to 1024: tables [{certificate = \"FILE\", key = \"FILE\", ocsp = "
      "\"FILE\", missing = \"self-signed\"}], the last two keys as needed";
  for (const auto& [written, wrong] :
       {std::pair<std::string, std::string>{"{certificate = \"a\", key = \"b\"}",
                                            "{certificate = \"a\", key = \"b\"} is not a list"},
        {"[\"file\"]", "\"file\" is not a table"},
        {"[{certificate = \"a\"}, 1]", "the list has an element that is not a table"},
        {"{certificate = 1}", "a table, not a list of them"},
        {"\"file\"", "a value of another kind"}}) {
    CAPTURE(written);
    CHECK(reverse_fault("tls = " + written + "\n") ==
          "t.toml:6:7: listen.0.tls: " + wrong + std::string(kAccepted));
  }
}

TEST_CASE("a version that is written as a number is shown as a text", "[config][tls]") {
  CHECK(reverse_fault("tls_min_version = 1.3\n") ==
        "t.toml:6:19: listen.0.tls_min_version: 1.3 is not a string; accepted: \"1.2\" or \"1.3\"");
}

TEST_CASE("pairs for TLS may be set on the command line", "[config][tls]") {
  const std::vector<std::string> sets = {
      "listen.0.tls=[{certificate = \"a.pem\", key = \"a.key\"}]"};
  const auto config = parse_config("", "t.toml", sets);
  REQUIRE(config.has_value());
  REQUIRE(config->listen[0].tls.size() == 1);
  CHECK(config->listen[0].tls[0]->key == "a.key");
}

TEST_CASE("a pair for TLS that is no pair is refused with its place", "[config][tls]") {
  CHECK(
      says(reverse_fault("tls = [{certificate = \"a.pem\"}]"),
           "t.toml:6:7: listen.0.tls: {certificate = \"a.pem\"} has no key; accepted: a list of"));
  CHECK(says(reverse_fault("tls = [{key = \"a.pem\"}]"), "has no certificate"));
  CHECK(says(reverse_fault("tls = [{certificate = \"a\", key = \"b\", name = \"c\"}]"),
             "has an unknown \"name\""));
  CHECK(says(reverse_fault("tls = [{certificate = \"a\", key = \"b\\nc\"}]"),
             "listen.0.tls: a value of"));
  CHECK(
      says(reverse_fault("tls = [{certificate = \"a\", key = \"b\\u0001\"}]"), "not a file name"));
  CHECK(says(reverse_fault("tls = [{certificate = \"a\", key = 1}]"), "a value of another kind"));
  CHECK(says(reverse_fault("tls = [\"a.pem\"]"), "listen.0.tls"));
  CHECK(says(reverse_fault("tls = {certificate = \"a\", key = \"b\"}"), "listen.0.tls"));
  CHECK(says(reverse_fault("allow_hosts = [{a = \"b\"}]"), "is not a host"));
}

TEST_CASE("what goes together of the keys for TLS is checked", "[config][tls]") {
  const std::string pair = "tls = [{certificate = \"a\", key = \"b\"}]\n";
  CHECK(says(reverse_fault("tls_client_verify = \"require\"\ntls_client_ca = \"c\"\n"),
             "tls_client_ca: without tls"));
  CHECK(says(reverse_fault("tls_min_version = \"1.3\"\n"), "tls_min_version: without tls"));
  CHECK(says(reverse_fault(pair + "tls_client_verify = \"request\"\n"), "without tls_client_ca"));
  CHECK(says(reverse_fault(pair + "tls_client_ca = \"c\"\n"), "without tls_client_verify"));
  CHECK(
      says(reverse_fault(pair + "tls_client_field = \"X-Client\"\n"), "without tls_client_verify"));
  CHECK(says(reverse_fault(pair + "redirect_https = true\n"), "of a listener with tls"));
  CHECK(says(reverse_fault("redirect_https = true\n[[listen]]\nredirect_https = true\n"),
             "listen.1.redirect_https: of a forward listener"));
  CHECK(says(reverse_fault(pair + "tls_alpn = [\"h2\"]\n"), "\"h2\" is not supported"));
  CHECK(says(reverse_fault(pair + "tls_client_verify = \"request\"\ntls_client_ca = \"c\"\n"
                                  "tls_client_field = \"Host\"\n"),
             "tls_client_field: \"Host\""));
  const Config config =
      good_reverse(pair +
                   "tls_client_verify = \"request\"\ntls_client_ca = \"c\"\n"
                   "tls_client_field = \"X-Client\"\ntls_min_version = \"1.3\"\ntls_alpn = []\n"
                   "tls_unknown_name = \"refuse\"\n");
  CHECK(config.listen[0].tls_client_field == "X-Client");
  CHECK(config.listen[0].tls_min_version == TlsVersion::k13);
  CHECK(good_reverse("redirect_https = true\n").listen[0].redirect_https_port == 443);
}

}  // namespace encore::config

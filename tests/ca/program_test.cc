#include "proxy/ca/cli/program.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "proxy/ca/authority.h"
#include "proxy/ca/cli/install_lines.h"
#include "tests/ca/verify.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace encore::ca {
namespace {

using server::read_text;
using server::TemporaryDirectory;
using server::write_text;

struct Ran {
  int exit_code = 0;
  std::string out;
  std::string err;
};

Ran run(const std::string& line, WallTime now = kNow) {
  std::istringstream words(line);
  std::ostringstream out;
  std::ostringstream err;
  Ran ran;
  ran.exit_code = run_program({std::istream_iterator<std::string>(words), {}},
                              {.out = out, .err = err, .machine = "build-7", .now = now});
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

void check_refused(const Ran& ran, const std::string& because) {
  CAPTURE(ran.err, because);
  CHECK(ran.exit_code == 2);
  CHECK(ran.out.empty());
  CHECK(ran.err.find(because) != std::string::npos);
  CHECK(std::ranges::count(ran.err, '\n') == 1);
}

unsigned mode_of(const std::string& file) {
  struct stat status{};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

bool is_there(const std::string& file) {
  struct stat status{};
  return ::lstat(file.c_str(), &status) == 0;
}

}  // namespace

TEST_CASE("encore ca create makes what the proxy loads", "[ca][cli]") {
  const TemporaryDirectory directory;
  const std::string out = directory / "made";
  const Ran ran = run("create --out " + out + " --host Packages.Example --host *.b.example");
  CAPTURE(ran.out, ran.err);
  REQUIRE(ran.exit_code == 0);
  CHECK(ran.err.empty());
  CHECK(mode_of(out + "/ca.key") == 0600);
  CHECK(mode_of(out + "/ca.crt") == 0644);
  const auto authority = Authority::load(out + "/ca.crt", out + "/ca.key");
  REQUIRE(authority.has_value());
  CHECK(authority->permitted() == std::vector<std::string>{"b.example", "packages.example"});
  CHECK(authority->name() == "encore on build-7");
  CHECK(ran.out.find("ca_certificate = \"" + out + "/ca.crt\"\n") != std::string::npos);
  CHECK(ran.out.find(authority->fingerprint()) != std::string::npos);
  CHECK(ran.out.find("may sign for b.example, packages.example, and hosts below; no address\n") !=
        std::string::npos);
  CHECK(ran.out.find("3650 days left") != std::string::npos);
}

TEST_CASE("encore ca create writes over nothing", "[ca][cli]") {
  const TemporaryDirectory directory;
  const std::string line = "create --out " + directory.path() + " --host a.example";
  write_text(directory / "ca.crt", "mine");
  check_refused(run(line), "ca.crt: exists already");
  CHECK(read_text(directory / "ca.crt") == "mine");
  CHECK_FALSE(is_there(directory / "ca.key"));
  std::filesystem::remove(directory / "ca.crt");
  write_text(directory / "ca.key", "mine");
  check_refused(run(line), "ca.key: exists already");
  CHECK(read_text(directory / "ca.key") == "mine");
  CHECK_FALSE(is_there(directory / "ca.crt"));
  // Nor does it follow what somebody has laid there.
  std::filesystem::remove(directory / "ca.key");
  std::filesystem::create_symlink(directory / "elsewhere", directory / "ca.key");
  check_refused(run(line), "ca.key: exists already");
  CHECK_FALSE(is_there(directory / "elsewhere"));
  check_refused(run("create --out " + (directory / "no/where") + " --host a.example"),
                "no/where: No such file");
}

TEST_CASE("encore ca create signs for what the configuration names", "[ca][cli]") {
  const TemporaryDirectory directory;
  const std::string config = directory / "encore.toml";
  const auto create = [&](const std::string& name, const std::string& more) {
    return run("create --out " + (directory / name) + " --config " + config + more);
  };
  write_text(config, "[intercept]\nhosts = [\"a.example\", \"*.b.example\"]\n");
  REQUIRE(create("1", " --host c.example").exit_code == 0);
  CHECK(Authority::load(directory / "1/ca.crt", directory / "1/ca.key")->permitted() ==
        std::vector<std::string>{"a.example", "b.example", "c.example"});
  write_text(config, "[intercept]\nhosts = [\"*\"]\nany_host = true\n");
  check_refused(create("2", ""), "intercept.hosts has \"*\", which needs --any-host");
  REQUIRE(create("2", " --any-host").exit_code == 0);
  CHECK(Authority::load(directory / "2/ca.crt", directory / "2/ca.key")->permits("x.example"));
  write_text(config, "[intercept]\nhost = []\n");
  check_refused(create("3", ""), "intercept.host: unknown key");
  write_text(config, "");
  check_refused(create("3", ""), "no host; add --host NAME");
  CHECK_FALSE(is_there(directory / "3"));
}

TEST_CASE("Names that no authority signs for are refused", "[ca][cli]") {
  const TemporaryDirectory directory;
  const std::string line = "create --out " + directory.path();
  check_refused(run(line), "no host; add --host NAME");
  check_refused(run(line + " --host 127.0.0.1"), "is an address");
  check_refused(run(line + " --host *"), "--any-host for all");
  check_refused(run(line + " --host a/b"), "is not a host");
  CHECK(run(line + " --host a.example --days 0").exit_code == 2);
  CHECK(run("create --host a.example").exit_code == 2);
  CHECK(run("").exit_code == 2);
  CHECK_FALSE(is_there(directory / "ca.key"));
}

TEST_CASE("encore ca renew changes dates, and nothing else", "[ca][cli]") {
  const TemporaryDirectory directory;
  REQUIRE(run("create --days 10 --host a.example --out " + directory.path()).exit_code == 0);
  const std::string key = read_text(directory / "ca.key");
  const auto old = Authority::load(directory / "ca.crt", directory / "ca.key");
  const WallTime later = kNow + std::chrono::days(30);
  CHECK(run("show " + (directory / "ca.crt"), later).out.find("no longer") != std::string::npos);
  const Ran ran = run("renew --days 100 " + directory.path(), later);
  CAPTURE(ran.err);
  REQUIRE(ran.exit_code == 0);
  CHECK(ran.out.find("100 days left") != std::string::npos);
  CHECK(read_text(directory / "ca.key") == key);
  CHECK(mode_of(directory / "ca.crt") == 0644);
  const auto renewed = Authority::load(directory / "ca.crt", directory / "ca.key");
  REQUIRE(renewed.has_value());
  CHECK(renewed->permitted() == old->permitted());
  CHECK(renewed->is_valid(later));
  std::filesystem::remove(directory / "ca.key");
  check_refused(run("renew " + directory.path()), "ca.key: No such file");
}

TEST_CASE("encore ca show --install names the file and the hosts", "[ca][cli]") {
  const TemporaryDirectory directory;
  REQUIRE(run("create --host a.example --host b.example --out " + directory.path()).exit_code == 0);
  const std::string file = directory / "ca.crt";
  const std::string config = directory / "encore.toml";
  write_text(config, "[intercept]\nca_certificate = \"" + file + "\"\nca_key = \"x\"\n");
  for (const std::string& line : {file, "--config " + config}) {
    const Ran ran = run("show --install " + line);
    CAPTURE(ran.err);
    REQUIRE(ran.exit_code == 0);
    for (const char* const part :
         {"update-ca-certificates", "Acquire::https::b.example::CAInfo", "curl --cacert",
          "wget --ca-certificate", "NODE_EXTRA_CA_CERTS=", "PIP_CERT=",
          "http.https://a.example/.ssl", "SSL_CERT_FILE=", "keytool -importcert",
          "/etc/docker/certs.d/b.example/ca.crt", "certutil -d sql:"}) {
      CAPTURE(part);
      CHECK(ran.out.find(part) != std::string::npos);
    }
    CHECK(ran.out.find(file) != std::string::npos);
    CHECK(ran.out.find("PRIVATE") == std::string::npos);
  }
  check_refused(run("show"), "no certificate; add CERT");
  check_refused(run("show " + (directory / "ca.key")), "ca.key: contains no PEM certificate");
}

TEST_CASE("A file name is one word of a shell", "[ca][cli]") {
  CHECK(shell_word("/etc/encore/ca.crt") == "/etc/encore/ca.crt");
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("a'$(x)") == "'a'\\''$(x)'");
  CHECK(shell_word("") == "''");
}

}  // namespace encore::ca

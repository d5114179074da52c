// Files of certificates that change while a server shows them, and those that do not exist yet.
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "proxy/net/file_mark.h"
#include "proxy/net/tls_server.h"
#include "tests/catch.h"
#include "tests/net/certificates.h"
#include "tests/temporary_directory.h"

namespace encore::net {
namespace {

namespace fs = std::filesystem;
using Server = std::shared_ptr<const TlsServer>;
using server::TemporaryDirectory;

// A server of pairs in a directory, each `NAME.pem` and `NAME.key`.
class Files {
 public:
  Files() {
    auto made = TlsTickets::create(monotonic_now());
    REQUIRE(made.has_value());
    options.tickets = std::move(*made);
    options.now = wall_now();
  }

  void add(const std::string& name, std::vector<std::string> stand_in_names = {}) {
    options.pairs.push_back({.certificate_file = certificate(name),
                             .key_file = key(name),
                             .stand_in_names = std::move(stand_in_names)});
  }
  std::string certificate(const std::string& name) const { return place / (name + ".pem"); }
  std::string key(const std::string& name) const { return place / (name + ".key"); }

  // Both, or one of them, as another file of that name.
  void put_certificate(const std::string& name, const TestCertificates::Pair& pair) const {
    fs::copy_file(pair.certificate, place / "new");
    fs::rename(place / "new", certificate(name));
  }
  void put_key(const std::string& name, const TestCertificates::Pair& pair) const {
    fs::copy_file(pair.key, place / "new");
    REQUIRE(::chmod((place / "new").c_str(), 0600) == 0);
    fs::rename(place / "new", key(name));
  }
  void put(const std::string& name, const TestCertificates::Pair& pair) const {
    put_certificate(name, pair);
    put_key(name, pair);
  }

  Server create(std::span<const Server> before = {}) const {
    auto made = TlsServer::create(options, before);
    if (!made) UNSCOPED_INFO(made.error().message);
    REQUIRE(made.has_value());
    return *made;
  }

  TemporaryDirectory place;
  TlsServer::Options options;
};

using Places = std::vector<std::size_t>;

}  // namespace

TEST_CASE("a file's mark is another one when the file is", "[net][tls]") {
  const TemporaryDirectory place;
  const std::string file = place / "file";
  CHECK_FALSE(FileMark::of(file).exists);
  CHECK_FALSE(FileMark::of(place / "none/file").exists);
  server::write_text(file, "one");
  const FileMark first = FileMark::of(file);
  CHECK(first.exists);
  CHECK(FileMark::of(file) == first);
  server::write_text(place / "other", "two");
  fs::rename(place / "other", file);
  CHECK_FALSE(FileMark::of(file) == first);
  fs::create_symlink(file, place / "link");
  CHECK(FileMark::of(place / "link") == FileMark::of(file));
  const FileMark before = FileMark::of(file);
  REQUIRE(::chmod(file.c_str(), 0600) == 0);
  CHECK_FALSE(FileMark::of(file) == before);
}

TEST_CASE("a pair that has changed is taken, and nothing while none has", "[net][tls]") {
  Files files;
  files.put("one", certificates().make({.names = "DNS:one.test"}));
  files.put("two", certificates().make({.names = "DNS:two.test"}));
  files.add("one");
  files.add("two");
  const Server server = files.create();
  const auto nothing = server->renew(files.options);
  CHECK(nothing.server == nullptr);
  CHECK(nothing.faults == std::vector<std::string>(2));
  files.put("two", certificates().make({.names = "DNS:new.test"}));
  const auto renewal = server->renew(files.options);
  REQUIRE(renewal.server != nullptr);
  CHECK(renewal.taken == Places{1});
  CHECK(renewal.server->certificates()[0].names == std::vector<std::string>{"one.test"});
  CHECK(renewal.server->certificates()[1].names == std::vector<std::string>{"new.test"});
  CHECK(&renewal.server->tickets() == &server->tickets());
  CHECK(renewal.server->renew(files.options).server == nullptr);
}

TEST_CASE("half a pair waits for the other half, and a broken file for a good one", "[net][tls]") {
  Files files;
  const auto first = certificates().make({.names = "DNS:one.test"});
  const auto second = certificates().make({.names = "DNS:two.test"});
  files.put("a", first);
  files.put("b", certificates().make({.names = "DNS:b.test"}));
  files.add("a");
  files.add("b");
  const Server server = files.create();
  files.put_certificate("a", second);
  files.put("b", certificates().make({.names = "DNS:new.test"}));
  const auto half = server->renew(files.options);
  // The good one of two that have changed is taken.
  REQUIRE(half.server != nullptr);
  CHECK(half.taken == Places{1});
  CHECK(half.faults[0].contains("does not match the certificate"));
  CHECK(half.faults[1].empty());
  CHECK(half.server->certificates()[0].names == std::vector<std::string>{"one.test"});
  // It is read again, although it has not changed since.
  CHECK(half.server->renew(files.options).faults[0] == half.faults[0]);
  files.put_key("a", second);
  const auto whole = half.server->renew(files.options);
  REQUIRE(whole.server != nullptr);
  CHECK(whole.server->certificates()[0].names == std::vector<std::string>{"two.test"});
  CHECK(whole.faults[0].empty());
  server::write_text(files.certificate("a"), "no certificate");
  CHECK(whole.server->renew(files.options).faults[0].contains("contains no certificate"));
  fs::remove(files.certificate("a"));
  const auto gone = whole.server->renew(files.options);
  CHECK(gone.server == nullptr);
  CHECK(gone.faults[0].contains("cannot be read"));
}

TEST_CASE("a pair that is not valid now is not taken", "[net][tls]") {
  Files files;
  files.put("a", certificates().make({.names = "DNS:one.test"}));
  files.add("a");
  const Server server = files.create();
  files.put("a", certificates().make({.names = "DNS:one.test", .until_days = -1}));
  CHECK(server->renew(files.options).faults[0].contains("has expired"));
  files.put("a", certificates().make({.names = "DNS:one.test", .from_days = 1, .until_days = 2}));
  CHECK(server->renew(files.options).faults[0].contains("is not valid before"));
  files.options.now += std::chrono::hours(36);
  CHECK(server->renew(files.options).taken == Places{0});
}

TEST_CASE("missing files have a self-signed certificate where that is wanted", "[net][tls]") {
  Files files;
  files.add("a", {"a.test", "*.b.test"});
  const Server server = files.create();
  REQUIRE(server->certificates().size() == 1);
  const TlsServer::Certificate known = server->certificates().front();
  CHECK(known.is_stand_in);
  CHECK(known.file == files.certificate("a"));
  CHECK(known.names == std::vector<std::string>{"a.test", "*.b.test"});
  CHECK(known.not_after - wall_now() > std::chrono::hours(24 * 3649));
  CHECK(fs::is_empty(files.place.path()));
  CHECK(server->renew(files.options).server == nullptr);
  // The next server of a reload has the same one.
  const std::vector<Server> before = {server};
  CHECK(files.create(before)->certificates()[0].not_after == known.not_after);
  const auto real = certificates().make({.names = "DNS:a.test"});
  files.put_key("a", real);
  const auto half = server->renew(files.options);
  CHECK(half.server == nullptr);
  CHECK(half.faults[0].empty());
  files.put_certificate("a", real);
  const auto renewal = server->renew(files.options);
  REQUIRE(renewal.server != nullptr);
  CHECK_FALSE(renewal.server->certificates()[0].is_stand_in);
  // A certificate in use gives way to none.
  fs::remove(files.key("a"));
  const std::vector<Server> present = {renewal.server};
  CHECK_FALSE(TlsServer::create(files.options, present).has_value());
  CHECK(files.create()->certificates()[0].is_stand_in);
}

TEST_CASE("missing files are an error otherwise, and so are those that are there", "[net][tls]") {
  Files files;
  files.add("a");
  CHECK_FALSE(TlsServer::create(files.options).has_value());
  Files broken;
  broken.add("a", {"a.test"});
  server::write_text(broken.certificate("a"), "no certificate");
  server::write_text(broken.key("a"), "no key");
  REQUIRE(::chmod(broken.key("a").c_str(), 0600) == 0);
  CHECK_FALSE(TlsServer::create(broken.options).has_value());
}

TEST_CASE("a self-signed certificate answers for no name that a real one has", "[net][tls]") {
  Files files;
  files.put("real", certificates().make({.names = "DNS:one.test,DNS:*.two.test", .rsa = true}));
  files.add("missing", {"one.test", "a.two.test", "own.test"});
  files.add("real");
  const Server server = files.create();
  CHECK(server->find("one.test") == server->find(""));
  CHECK(server->find("a.two.test") == server->find("b.two.test"));
  CHECK(server->find("own.test") != nullptr);
  CHECK(server->find("own.test") != server->find("one.test"));
  CHECK(server->find("unknown.test") == server->find(""));
  const auto& real = server->certificates()[1];
  CHECK_FALSE(real.is_stand_in);
}

}  // namespace encore::net

#include "proxy/settings/credentials.h"

#include <fstream>
#include <string>

#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

// Hashes of "secret", by htpasswd -B and openssl passwd -6.
const std::string kBcrypt = "$2y$04$o7a32LtrLk7cLYVa2tWvvuNuGjv5ZEqlqmcmgXtp43nGtcdDlIgTm";
const std::string kSha512 =
    "$6$abcdefgh$ltjgWl6579NluT/Vi1nwEvcil.G5Nbc4NiXZaNGStk8PSwGfQv72N2CKPPrVACtLtip/cZ/1GM/"
    "O6IND4WQhG.";
// SHA-256 of "abc" (FIPS 180-2, B.1).
const std::string kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

struct Files {
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(directory / name) << text;
    return directory / name;
  }
  // The fault of the users, after the file's name.
  std::string fault(const std::string& users) {
    const std::string file = write("users", users);
    const auto made = Credentials::load(file, "");
    return made ? "" : made.error().message.substr(file.size());
  }
  TemporaryDirectory directory;
};

}  // namespace

TEST_CASE("an Authorization is taken apart", "[settings][credentials]") {
  using Scheme = Login::Scheme;
  const Login basic = read_login("bAsIc QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  CHECK(basic.scheme == Scheme::kBasic);
  CHECK(basic.name == "Aladdin");
  CHECK(basic.secret == "open sesame");
  CHECK(read_login("Basic YTpiOmM=").secret == "b:c");
  CHECK(read_login("Basic Og==").scheme == Scheme::kBasic);
  const Login bearer = read_login("Bearer abc.def");
  CHECK(bearer.scheme == Scheme::kBearer);
  CHECK(bearer.secret == "abc.def");
  for (const char* bad : {"", "Basic", "Basic ", "Basic YQ==", "Basic YTpi=", "Basic YTp", "Bearer",
                          "Basic YTpi YTpi", "Basic YTpj!", "Digest a=b", "Basic YTr="}) {
    CAPTURE(bad);
    CHECK(read_login(bad).scheme == Scheme::kUnreadable);
  }
}

TEST_CASE("users are who the file names, by hashes that take long", "[settings][credentials]") {
  Files files;
  const std::string users =
      files.write("users", "# ours\n\nann:" + kBcrypt + "\r\nbob:" + kSha512 + "\n");
  const auto made = Credentials::load(users, "");
  REQUIRE(made.has_value());
  CHECK((*made)->has_users());
  CHECK_FALSE((*made)->has_tokens());
  for (const char* name : {"ann", "bob"}) {
    const auto hash = (*made)->hash_of(name);
    REQUIRE(hash.known);
    CHECK(net::has_hash("secret", *hash.text));
    CHECK_FALSE(net::has_hash("secrets", *hash.text));
    CHECK_FALSE(net::has_hash(std::string("secret\0x", 8), *hash.text));
  }
  const auto nobody = (*made)->hash_of("eve");
  CHECK_FALSE(nobody.known);
  CHECK(nobody.text != nullptr);
}

TEST_CASE("names that there are not take as long as some that there are, each always the same time",
          "[settings][credentials]") {
  Files files;
  const std::string users =
      files.write("users", "ann:" + kBcrypt + "\nbob:" + kSha512 + "\ncat:" + kSha512 +
                               "\ndan:" + kSha512 + "\n");
  const auto made = Credentials::load(users, "");
  const auto again = Credentials::load(users, "");
  REQUIRE(made.has_value());
  REQUIRE(again.has_value());
  int slow = 0;
  constexpr int kNames = 1000;
  for (int i = 0; i < kNames; ++i) {
    const std::string name = "eve" + std::to_string(i);
    const auto hash = (*made)->hash_of(name);
    REQUIRE_FALSE(hash.known);
    REQUIRE(hash.text != nullptr);
    slow += *hash.text == kSha512 ? 1 : 0;
    CHECK(*(*made)->hash_of(name).text == *hash.text);
    // A restart draws the same one, else it could be distinguished from a user who has kept his
    // own.
    CHECK(*(*again)->hash_of(name).text == *hash.text);
  }
  // Three of four, 4.5 sigma of 13.7.
  CHECK(slow > 750 - 62);
  CHECK(slow < 750 + 62);
}

TEST_CASE("a file of users says which line is wrong, and not what is in it",
          "[settings][credentials]") {
  Files files;
  const std::string good = "ann:" + kBcrypt + "\n";
  CHECK(files.fault(good).empty());
  CHECK(files.fault(good + "bob\n").starts_with(":2: has no colon"));
  CHECK(files.fault(":" + kBcrypt).starts_with(":1: has no name"));
  CHECK(files.fault(good + good) == ":2: a name twice");
  for (const char* weak : {"ab01FAX.bQRSU", "$1$abcdefgh$irWbblnpmw.5z7wgBnprh0", "secret", "",
                           "$apr1$x$6WYPKT2aVRWrN3UPFpjIG0", "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
                           "$5$abcdefgh$ZLdkj8mkc2XVSrPVjskDAgZPGjtj1VGVaa1aUkrMTU/"}) {
    CAPTURE(weak);
    const std::string said = files.fault(good + "bob:" + weak);
    CHECK(said.starts_with(":2: has a weak or unknown hash"));
  }
  CHECK(files.fault("ann:" + kBcrypt.substr(0, 59)) == ":1: is not a complete hash");
  CHECK(files.fault("ann:" + kBcrypt + " ") == ":1: is not a complete hash");
  CHECK(files.fault("ann:$2y$04$") == ":1: is not a complete hash");
  CHECK_FALSE(Credentials::load("/no/such/file", "").has_value());
}

TEST_CASE("tokens are known by their digests", "[settings][credentials]") {
  Files files;
  const auto made = Credentials::load("", files.write("tokens", "ci:" + kAbc + "\n"));
  REQUIRE(made.has_value());
  const std::string* const name = (*made)->name_of_token("abc");
  REQUIRE(name != nullptr);
  CHECK(*name == "ci");
  CHECK((*made)->name_of_token("abd") == nullptr);
  CHECK((*made)->name_of_token("") == nullptr);
  CHECK_FALSE((*made)->hash_of("ci").known);
  CHECK_FALSE(Credentials::load("", files.write("bad", "ci:" + kAbc + "0")).has_value());
  CHECK_FALSE(Credentials::load("", files.write("bad", "ci:abc")).has_value());
}

}  // namespace encore::server

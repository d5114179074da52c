#include "proxy/ca/authority.h"

#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proxy/ca/handles.h"
#include "proxy/ca/making.h"
#include "tests/ca/verify.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace encore::ca {
namespace {

using Names = std::vector<std::string>;
using server::TemporaryDirectory;
using server::write_text;

const std::string kNotPermitted = "permitted subtree violation";
const std::string kExcluded = "excluded subtree violation";

std::string why(const Result<Authority>& refused) {
  REQUIRE_FALSE(refused.has_value());
  return refused.error().message;
}

}  // namespace

TEST_CASE("An authority says what it is", "[ca]") {
  const Authority authority = parsed(made_for({"*.a.example", "b.example"}));
  CHECK(authority.name() == "test");
  CHECK(authority.permitted() == Names{"a.example", "b.example"});
  CHECK(authority.excludes_addresses());
  CHECK(authority.is_valid(kNow));
  CHECK(authority.not_before() == kNow - std::chrono::days(1));
  CHECK(authority.not_after() == kNow + std::chrono::days(3650));
  CHECK_FALSE(authority.is_valid(authority.not_after()));
  CHECK_FALSE(authority.is_valid(authority.not_before() - std::chrono::seconds(1)));
  CHECK(authority.fingerprint().size() == 95);
  CHECK(authority.pem().starts_with("-----BEGIN CERTIFICATE-----\n"));
  CHECK(authority.pem().find("PRIVATE") == std::string::npos);
  // Two are two, also of one name.
  CHECK(parsed(made_for({"a.example"})).fingerprint() !=
        parsed(made_for({"a.example"})).fingerprint());
}

TEST_CASE("Its constraints are critical, and it makes no other authority", "[ca]") {
  const Authority authority = parsed(made_for({"a.example"}));
  X509* const certificate = authority.certificate();
  for (const int nid : {NID_name_constraints, NID_basic_constraints, NID_key_usage}) {
    const int at = X509_get_ext_by_NID(certificate, nid, -1);
    REQUIRE(at >= 0);
    CHECK(X509_EXTENSION_get_critical(X509_get_ext(certificate, at)) == 1);
  }
  CHECK(X509_get_pathlen(certificate) == 0);
  CHECK(X509_get_key_usage(certificate) == (KU_KEY_CERT_SIGN | KU_CRL_SIGN));
  CHECK(EVP_PKEY_get_bits(authority.key()) == 256);
}

TEST_CASE("A stolen key is worth no more than the hosts of its authority", "[ca]") {
  const Authority authority = parsed(made_for({"*.a.example", "b.example"}));
  const auto of = [&](const std::string& host) {
    const std::string said = verdict(forged(authority, host, kNow), authority, host, kNow);
    // Our verdict equals the clients'.
    CHECK(authority.permits(host) == (said == "ok"));
    return said;
  };
  CHECK(of("a.example") == "ok");
  CHECK(of("x.a.example") == "ok");
  CHECK(of("y.x.a.example") == "ok");
  CHECK(of("b.example") == "ok");
  CHECK(of("c.example") == kNotPermitted);
  CHECK(of("example") == kNotPermitted);
  CHECK(of("nota.example") == kNotPermitted);
  CHECK(of("a.example.org") == kNotPermitted);
  CHECK(verdict(forged_address(authority, {"\x7f\0\0\x01", 4}, kNow), authority, "127.0.0.1",
                kNow) == kExcluded);
  CHECK(authority.permits("*.a.example"));
  CHECK(authority.permits("*.x.a.example"));
  CHECK_FALSE(authority.permits("*.example"));
  CHECK_FALSE(authority.permits("*.c.example"));

  const Authority any = parsed(made_for({}));
  CHECK(any.permitted().empty());
  CHECK(any.permits("*.example"));
  CHECK(verdict(forged(any, "c.example", kNow), any, "c.example", kNow) == "ok");
  CHECK(verdict(forged_address(any, {"\x7f\0\0\x01", 4}, kNow), any, "127.0.0.1", kNow) ==
        kExcluded);
}

TEST_CASE("Constraints say each name once", "[ca]") {
  CHECK(constraint_names({"*.a.example", "a.example", "x.a.example", "b.example", "*.y.b.example",
                          "xa.example"}) == Names{"a.example", "b.example", "xa.example"});
  CHECK(constraint_names({}).empty());
}

TEST_CASE("An authority is for hosts", "[ca]") {
  CHECK_FALSE(make_authority({.name = "test", .hosts = {}, .now = kNow}).has_value());
}

TEST_CASE("A renewed certificate is good for what the old one has signed", "[ca]") {
  const Authority old = parsed(made_for({"a.example"}, std::chrono::days(10)));
  const WallTime later = kNow + std::chrono::days(9);
  const auto text = renew_certificate(old, later, std::chrono::days(100));
  REQUIRE(text.has_value());
  const auto renewed = Authority::parse_certificate(*text);
  REQUIRE(renewed.has_value());
  CHECK(renewed->permitted() == old.permitted());
  CHECK(renewed->name() == old.name());
  CHECK(renewed->not_after() == later + std::chrono::days(100));
  CHECK(renewed->fingerprint() != old.fingerprint());
  const WallTime then = kNow + std::chrono::days(11);
  const std::string leaf = forged(old, "a.example", then);
  CHECK(verdict(leaf, old, "a.example", then) == "certificate has expired");
  CHECK(verdict(leaf, *renewed, "a.example", then) == "ok");
  CHECK(verdict(forged(old, "c.example", then), *renewed, "c.example", then) == kNotPermitted);
}

TEST_CASE("What is no authority is refused", "[ca]") {
  const CreatedCa made = made_for({"a.example"});
  const CreatedCa other = made_for({"a.example"});
  CHECK(why(Authority::parse("", made.key)) == "contains no PEM certificate");
  CHECK(why(Authority::parse(made.key, made.key)) == "contains no PEM certificate");
  CHECK(why(Authority::parse(made.certificate, other.key)) == "does not match the certificate");
  CHECK(
      why(Authority::parse(made.certificate, made.certificate)).starts_with("contains no PEM key"));
  const Owned<BIO> key(BIO_new(BIO_s_mem()));
  const Owned<EVP_PKEY> edwards(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  PEM_write_bio_PKCS8PrivateKey(key.get(), edwards.get(), nullptr, nullptr, 0, nullptr, nullptr);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(key.get(), &bytes);
  CHECK(why(Authority::parse(made.certificate, {bytes, static_cast<std::size_t>(size)})) ==
        "has an unsupported type; accepted: EC, RSA");
  // A server's certificate.
  const Authority authority = parsed(made);
  const std::string leaf = forged(authority, "a.example", kNow);
  const auto* der = reinterpret_cast<const unsigned char*>(leaf.data());
  const Owned<X509> certificate(d2i_X509(nullptr, &der, static_cast<long>(leaf.size())));
  const Owned<BIO> pem(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(pem.get(), certificate.get());
  const long length = BIO_get_mem_data(pem.get(), &bytes);
  CHECK(why(Authority::parse_certificate({bytes, static_cast<std::size_t>(length)})) ==
        "is not a CA certificate");
}

// An authority for a.example as files.
struct AuthorityFiles {
  AuthorityFiles() {
    const CreatedCa made = made_for({"a.example"});
    write_text(certificate, made.certificate);
    write_text(key, made.key);
  }
  const TemporaryDirectory directory;
  const std::string certificate = directory / "ca.crt";
  const std::string key = directory / "ca.key";
};

TEST_CASE("A key that anybody can read is refused", "[ca]") {
  const AuthorityFiles files;
  const std::string& certificate = files.certificate;
  const std::string& key = files.key;
  for (const unsigned mode : {0600U, 0640U, 0400U}) {
    REQUIRE(::chmod(key.c_str(), mode) == 0);
    CHECK(Authority::load(certificate, key).has_value());
  }
  for (const unsigned mode : {0644U, 0604U, 0602U, 0601U, 0660U, 0620U}) {
    CAPTURE(mode);
    REQUIRE(::chmod(key.c_str(), mode) == 0);
    CHECK(why(Authority::load(certificate, key))
              .starts_with(key + ": others can read or write it, accepted: "));
  }
  CHECK(why(Authority::load(files.directory / "none", key)) ==
        files.directory / "none" + ": No such file or directory");
  CHECK(why(Authority::load(files.directory.path(), key)) ==
        files.directory.path() + ": is not a regular file");
  write_text(certificate, std::string(64 * 1024 + 1, 'x'));
  CHECK(why(Authority::load(certificate, key)) == certificate + ": is larger than 64 KiB");
}

TEST_CASE("A service takes a key of its own user or of root, and no other", "[ca]") {
  const AuthorityFiles files;
  const std::string& certificate = files.certificate;
  const std::string& key = files.key;
  REQUIRE(::chmod(key.c_str(), 0640) == 0);
  auto authority = Authority::load_certificate(certificate);
  REQUIRE(authority.has_value());
  CHECK_FALSE(authority->has_key());
  CHECK(authority->load_key(key).has_value());
  CHECK(authority->has_key());
  CHECK(authority->load_key(certificate).error().message.starts_with(certificate + ": "));
  if (::geteuid() != 0) return;  // only root gives files away
  constexpr uid_t kSomebody = 65534;
  REQUIRE(::chown(key.c_str(), kSomebody, 0) == 0);
  CHECK(authority->load_key(key).error().message ==
        key + ": it is another user's, accepted: a file of this user or root, mode 0600 or 0640");
  // Root may renew it while the service owns the key.
  CHECK(Authority::load(certificate, key).has_value());
}

}  // namespace encore::ca

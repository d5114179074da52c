#include "proxy/ca/leaf_issuer.h"

#include <openssl/pem.h>

#include <set>
#include <thread>

#include "proxy/ca/handles.h"
#include "tests/ca/verify.h"
#include "tests/catch.h"

namespace encore::ca {
namespace {

using std::chrono::days;

std::shared_ptr<LeafIssuer> mint_for(const std::vector<std::string>& hosts, days life = days(3650),
                                     std::size_t leaves_max = LeafIssuer::kLeavesMax) {
  auto mint = LeafIssuer::create(parsed(made_for(hosts, life)), leaves_max);
  REQUIRE(mint.has_value());
  return *mint;
}

Owned<X509> read(const Leaf& leaf) {
  const auto* der = reinterpret_cast<const unsigned char*>(leaf.certificate.data());
  Owned<X509> certificate(d2i_X509(nullptr, &der, static_cast<long>(leaf.certificate.size())));
  REQUIRE(certificate != nullptr);
  return certificate;
}

std::string serial_of(const Leaf& leaf) {
  const Owned<X509> certificate = read(leaf);
  const Owned<BIGNUM> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate.get()), nullptr));
  char* const text = BN_bn2hex(number.get());
  std::string serial = text;
  OPENSSL_free(text);
  return serial;
}

}  // namespace

TEST_CASE("A leaf is good for its host, and for no other", "[ca][mint]") {
  const auto mint = mint_for({"*.a.example"});
  const auto leaf = mint->leaf("x.a.example", kNow);
  REQUIRE(leaf != nullptr);
  const auto of = [&](const std::string& host, WallTime now) {
    return verdict(leaf->certificate, mint->authority(), host, now);
  };
  CHECK(of("x.a.example", kNow) == "ok");
  CHECK(of("y.a.example", kNow) == "hostname mismatch");
  CHECK(of("a.example", kNow) == "hostname mismatch");
  // For a client whose clock is behind, and for long enough for all others.
  CHECK(of("x.a.example", kNow - std::chrono::hours(23)) == "ok");
  CHECK(of("x.a.example", kNow - std::chrono::hours(25)) != "ok");
  CHECK(of("x.a.example", kNow + days(90) - std::chrono::minutes(1)) == "ok");
  CHECK(of("x.a.example", kNow + days(90) + std::chrono::minutes(1)) == "certificate has expired");
  // A certificate of another authority.
  CHECK(verdict(leaf->certificate, parsed(made_for({"a.example"})), "x.a.example", kNow) != "ok");
}

TEST_CASE("The leaves' key is not the authority's", "[ca][mint]") {
  const auto mint = mint_for({"a.example", "b.example"});
  const Owned<X509> a = read(*mint->leaf("a.example", kNow));
  const Owned<X509> b = read(*mint->leaf("b.example", kNow));
  CHECK(X509_check_private_key(a.get(), mint->key()) == 1);
  CHECK(X509_check_private_key(b.get(), mint->key()) == 1);
  CHECK(X509_check_private_key(a.get(), mint->authority().key()) == 0);
  CHECK(EVP_PKEY_eq(mint->key(), mint_for({"a.example"})->key()) == 0);
  CHECK(X509_NAME_entry_count(X509_get_subject_name(a.get())) == 0);
  CHECK(X509_check_ca(a.get()) == 0);
  CHECK((X509_get_extended_key_usage(a.get()) & ~unsigned{XKU_SSL_SERVER}) == 0);
}

TEST_CASE("Nothing is made that clients would refuse", "[ca][mint]") {
  const auto mint = mint_for({"a.example"});
  CHECK(mint->leaf("b.example", kNow) == nullptr);
  CHECK(mint->leaf("*.a.example", kNow) == nullptr);
  CHECK(mint->leaf("", kNow) == nullptr);
  CHECK(mint->leaf("a.example", kNow - days(2)) == nullptr);
  CHECK(mint->leaf("a.example", kNow + days(3650)) == nullptr);
  CHECK(mint->made() == 0);
}

TEST_CASE("A leaf is made once, and again at two thirds of its life", "[ca][mint]") {
  const auto mint = mint_for({"a.example"});
  const auto first = mint->leaf("a.example", kNow);
  REQUIRE(first->renew_at == kNow + days(60));
  CHECK(mint->leaf("a.example", kNow + days(60) - std::chrono::seconds(1)) == first);
  CHECK(mint->made() == 1);
  const auto second = mint->leaf("a.example", kNow + days(60));
  CHECK(second != first);
  CHECK(verdict(second->certificate, mint->authority(), "a.example", kNow + days(149)) == "ok");
  CHECK(mint->made() == 2);
  CHECK(mint->kept() == 1);
}

TEST_CASE("No leaf outlives its authority", "[ca][mint]") {
  const auto mint = mint_for({"a.example"}, days(30));
  const auto leaf = mint->leaf("a.example", kNow);
  CHECK(leaf->renew_at == kNow + days(20));
  const Owned<X509> certificate = read(*leaf);
  CHECK(ASN1_TIME_compare(X509_get0_notAfter(certificate.get()),
                          X509_get0_notAfter(mint->authority().certificate())) == 0);
  // To its last second there is one that is good.
  const WallTime last = mint->authority().not_after() - std::chrono::seconds(1);
  const auto final_leaf = mint->leaf("a.example", last);
  REQUIRE(final_leaf != nullptr);
  CHECK(verdict(final_leaf->certificate, mint->authority(), "a.example", last) == "ok");
}

TEST_CASE("Leaves have a bound, and the one asked for longest ago leaves", "[ca][mint]") {
  const auto mint = mint_for({"a.example"}, days(3650), 3);
  const auto leaf = [&](const std::string& name) { return mint->leaf(name + ".a.example", kNow); };
  const auto one = leaf("1");
  const auto two = leaf("2");
  const auto three = leaf("3");
  CHECK(leaf("1") == one);
  CHECK(mint->kept() == 3);
  const auto four = leaf("4");  // in the place of 2
  CHECK(mint->kept() == 3);
  CHECK(leaf("3") == three);
  CHECK(leaf("1") == one);
  CHECK(leaf("4") == four);
  CHECK(mint->made() == 4);
  CHECK(leaf("2") != two);
  CHECK(mint->made() == 5);
  // An evicted one stays valid for its holders.
  CHECK(verdict(two->certificate, mint->authority(), "2.a.example", kNow) == "ok");
}

TEST_CASE("Serial numbers are random, positive and unlike", "[ca][mint]") {
  const auto mint = mint_for({});
  std::set<std::string> serials;
  for (int i = 0; i < 100; ++i) {
    const auto leaf = mint->leaf("h" + std::to_string(i) + ".example", kNow);
    const std::string serial = serial_of(*leaf);
    CHECK(serial.size() == 32);
    CHECK(serial.front() >= '4');
    CHECK(serial.front() <= '7');
    serials.insert(serial);
  }
  CHECK(serials.size() == 100);
}

TEST_CASE("A mint of an RSA authority makes leaves, too", "[ca][mint]") {
  // As somebody's own tools have made it: without constraints.
  const Owned<EVP_PKEY> key(EVP_RSA_gen(2048));
  const CreatedCa ours = made_for({"a.example"});
  const Owned<BIO> text(BIO_new_mem_buf(ours.certificate.data(), -1));
  const Owned<X509> certificate(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
  X509_set_pubkey(certificate.get(), key.get());
  X509_sign(certificate.get(), key.get(), EVP_sha256());
  const Owned<BIO> out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate.get());
  const Owned<BIO> out_key(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(out_key.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  const auto taken = [](BIO* bio) {
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(bio, &bytes);
    return std::string(bytes, static_cast<std::size_t>(size));
  };
  auto authority = Authority::parse(taken(out.get()), taken(out_key.get()));
  REQUIRE(authority.has_value());
  const auto mint = LeafIssuer::create(std::move(*authority));
  REQUIRE(mint.has_value());
  const auto leaf = (*mint)->leaf("a.example", kNow);
  REQUIRE(leaf != nullptr);
  CHECK(verdict(leaf->certificate, (*mint)->authority(), "a.example", kNow) == "ok");
}

TEST_CASE("Threads share a mint", "[ca][mint]") {
  const auto mint = mint_for({}, days(3650), 8);
  constexpr int kThreads = 4;
  constexpr int kRounds = 100;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < kRounds; ++round) {
        const std::string host = "h" + std::to_string((round + thread) % 12) + ".example";
        const auto leaf = mint->leaf(host, kNow);
        if (leaf == nullptr || leaf->certificate.find(host) == std::string::npos) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(mint->kept() == 8);
}

}  // namespace encore::ca

#include "proxy/net/sealing.h"

#include "tests/catch.h"

namespace encore::net {
namespace {

TEST_CASE("what one seals the other opens, and nobody else", "[net]") {
  const auto giver = SealingPair::create();
  const auto receiver = SealingPair::create();
  const auto stranger = SealingPair::create();
  REQUIRE((giver && receiver && stranger));
  const auto key = giver->agree(receiver->public_key(), "7 bytes");
  REQUIRE(key);
  CHECK(receiver->agree(giver->public_key(), "7 bytes") == key);
  CHECK(stranger->agree(giver->public_key(), "7 bytes") != key);
  CHECK(stranger->agree(receiver->public_key(), "7 bytes") != key);
  // With another description the key differs.
  CHECK(receiver->agree(giver->public_key(), "8 bytes") != key);
  // A point of small order gives everybody the same secret.
  CHECK_FALSE(giver->agree(Digest{}, "7 bytes"));

  const std::string sealed = seal(*key, 3, "secret!");
  CHECK(sealed.size() == 7 + kSealBytes);
  CHECK(sealed.find("secret!") == std::string::npos);
  CHECK(open_sealed(*key, 3, sealed) == "secret!");
  CHECK_FALSE(open_sealed(*key, 4, sealed));
  CHECK_FALSE(open_sealed(*stranger->agree(giver->public_key(), "7 bytes"), 3, sealed));
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CAPTURE(i);
    CHECK_FALSE(open_sealed(*key, 3, changed));
    CHECK_FALSE(open_sealed(*key, 3, std::string_view(sealed).substr(0, i)));
  }
  CHECK(open_sealed(*key, 0, seal(*key, 0, "")) == "");
}

TEST_CASE("a public key passes as a text", "[net]") {
  const auto pair = SealingPair::create();
  REQUIRE(pair);
  CHECK(to_hex(pair->public_key()).size() == 64);
  CHECK(parse_digest(to_hex(pair->public_key())) == pair->public_key());
}

}  // namespace
}  // namespace encore::net

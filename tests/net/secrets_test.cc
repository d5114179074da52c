#include "proxy/net/secrets.h"

#include <string>

#include "tests/catch.h"

namespace encore::net {

TEST_CASE("base64 is read to the letter", "[net][secrets][rfc4648]") {
  CHECK(decode_base64("") == "");
  CHECK(decode_base64("Zg==") == "f");
  CHECK(decode_base64("Zm8=") == "fo");
  CHECK(decode_base64("Zm9vYmFy") == "foobar");
  CHECK(decode_base64("AP8=") == std::string("\0\xff", 2));
  for (const char* bad :
       {"Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Zm 9", "Zg==Zg==", "=", "===="}) {
    CAPTURE(bad);
    CHECK_FALSE(decode_base64(bad).has_value());
  }
}

TEST_CASE("digests are those of the standards", "[net][secrets]") {
  // FIPS 180-2, B.1.
  const auto abc = parse_digest("BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  REQUIRE(abc.has_value());
  CHECK(equal_in_constant_time(sha256("abc"), *abc));
  CHECK_FALSE(equal_in_constant_time(sha256("abd"), *abc));
  CHECK_FALSE(parse_digest("ba78").has_value());
  CHECK_FALSE(parse_digest(std::string(63, '0') + "g").has_value());
  const Digest key = random_digest();
  CHECK(keyed_digest(key, "a") == keyed_digest(key, "a"));
  CHECK(keyed_digest(key, "a") != keyed_digest(random_digest(), "a"));
}

}  // namespace encore::net

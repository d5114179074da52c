#include "proxy/coding/negotiation.h"

#include <array>
#include <string_view>

#include "tests/catch.h"

namespace encore::coding {
namespace {

constexpr std::array kOffered = {Coding::kZstd, Coding::kBrotli, Coding::kGzip};

std::string_view chosen(std::string_view accepted, std::span<const Coding> offered = kOffered) {
  http::Fields fields;
  fields.add("Accept-Encoding", accepted);
  const auto coding = choose(fields, offered);
  return coding ? to_string(*coding) : "identity";
}

TEST_CASE("the coding that a client weighs most is chosen, of equal ones the first offered",
          "[coding][rfc9110][12.5.3]") {
  CHECK(chosen("gzip, deflate, br, zstd") == "zstd");
  CHECK(chosen("gzip, deflate, br") == "br");
  CHECK(chosen("gzip") == "gzip");
  CHECK(chosen("GZip") == "gzip");
  CHECK(chosen("x-gzip") == "gzip");
  CHECK(chosen("deflate") == "identity");
  CHECK(chosen("") == "identity");
  CHECK(chosen("gzip;q=1.0, br;q=0.9, zstd;q=0.5") == "gzip");
  CHECK(chosen("gzip ; Q=0.3,br\t;q=0.31") == "br");
  CHECK(chosen("gzip, br", std::array{Coding::kGzip, Coding::kBrotli}) == "gzip");
  CHECK(chosen("br", std::array{Coding::kGzip}) == "identity");
  CHECK(chosen("gzip", std::span<const Coding>()) == "identity");
}

TEST_CASE("what is refused is not chosen", "[coding][rfc9110][12.5.3]") {
  CHECK(chosen("gzip;q=0") == "identity");
  CHECK(chosen("gzip;q=0, *") == "zstd");
  CHECK(chosen("gzip;q=0.000, br;q=0.001") == "br");
  CHECK(chosen("*;q=0") == "identity");
  CHECK(chosen("*;q=0, gzip") == "gzip");
  CHECK(chosen("zstd;q=0, br;q=0, *;q=0.5") == "gzip");
  CHECK(chosen("gzip, gzip;q=0") == "identity");
}

TEST_CASE("a star stands for what is not named", "[coding][rfc9110][12.5.3]") {
  CHECK(chosen("*") == "zstd");
  CHECK(chosen("gzip, *;q=0.1") == "gzip");
  CHECK(chosen("gzip;q=0.1, *") == "zstd");
  CHECK(chosen("gzip;q=0.5, *;q=0.7", std::array{Coding::kGzip}) == "identity");
}

TEST_CASE("identity counts where it is weighed", "[coding][rfc9110][12.5.3]") {
  CHECK(chosen("identity") == "identity");
  CHECK(chosen("identity, gzip;q=0.5") == "identity");
  CHECK(chosen("identity;q=0.5, gzip") == "gzip");
  CHECK(chosen("identity, gzip") == "gzip");
  CHECK(chosen("identity;q=0, gzip;q=0.1") == "gzip");
  CHECK(chosen("identity;q=0") == "identity");
}

TEST_CASE("a weight that cannot be read counts as none", "[coding]") {
  for (const std::string_view weight :
       {"", "2", "1.001", "-1", "0.0001", "0,5", "x", "1.", ".5", "0x1", "+1", "1e0"}) {
    CAPTURE(weight);
    const bool whole = weight == "1.";
    CHECK(chosen("gzip;q=" + std::string(weight)) == (whole ? "gzip" : "identity"));
  }
}

TEST_CASE("several lines are one list, and no line is no wish", "[coding]") {
  http::Fields fields;
  CHECK_FALSE(choose(fields, kOffered).has_value());
  fields.add("Accept-Encoding", "deflate");
  fields.add("accept-encoding", "br;q=0.5, gzip");
  CHECK(choose(fields, kOffered) == Coding::kGzip);
}

}  // namespace
}  // namespace encore::coding

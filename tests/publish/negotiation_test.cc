#include "proxy/publish/negotiation.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/publish/coding.h"
#include "tests/catch.h"

namespace encore::publish {
namespace {

constexpr std::array<std::string_view, 3> kOffered = {"application/vnd.encore.filter",
                                                      "application/json", "text/plain"};

std::optional<std::size_t> type_for(const char* accept) {
  http::Fields fields;
  if (accept != nullptr) fields.add("Accept", accept);
  return choose_type(fields, kOffered);
}

Coding coding_for(const char* accept) {
  http::Fields fields;
  if (accept != nullptr) fields.add("Accept-Encoding", accept);
  return choose_coding(fields);
}

}  // namespace

TEST_CASE("The type with the highest weight is chosen, by its most specific range",
          "[publish][rfc9110][12.5.1]") {
  struct Row {
    const char* accept;
    std::optional<std::size_t> chosen;
  };
  for (const Row& row : std::vector<Row>{
           {nullptr, 0},
           {"*/*", 0},
           {"application/json", 1},
           {"APPLICATION/JSON", 1},
           {"application/*", 0},
           {"text/*, application/json;q=0.5", 2},
           {"application/json;q=0.4, text/plain;q=0.5", 2},
           {"application/json;q=0.5, text/plain;q=0.4", 1},
           {"*/*, application/vnd.encore.filter;q=0", 1},
           {"application/*;q=0.1, */*", 2},
           {"application/json;level=1;q=0.9, */*;q=0.8", 1},
           {"application/json ; q=0.3 , text/plain ; q=0.2", 1},
           {"application/json;q=0", std::nullopt},
           {"application/json;q=2", std::nullopt},
           {"application/json;q=0.1234", std::nullopt},
           {"image/png", std::nullopt},
           {"app/*", std::nullopt},
           {"application/", std::nullopt},
       }) {
    INFO((row.accept == nullptr ? "none" : row.accept));
    CHECK(type_for(row.accept) == row.chosen);
  }
}

TEST_CASE("The coding with the highest weight is chosen, and identity at the last",
          "[publish][rfc9110][12.5.3]") {
  struct Row {
    const char* accept;
    Coding chosen;
  };
  for (const Row& row : std::vector<Row>{{nullptr, Coding::kIdentity},
                                         {"", Coding::kIdentity},
                                         {"gzip", Coding::kGzip},
                                         {"x-gzip", Coding::kGzip},
                                         {"gzip, deflate, br", Coding::kGzip},
                                         {"gzip, deflate, br, zstd", Coding::kZstd},
                                         {"zstd;q=0.5, gzip;q=0.6", Coding::kGzip},
                                         {"gzip;q=0", Coding::kIdentity},
                                         {"gzip;q=0, *", Coding::kZstd},
                                         {"*;q=0", Coding::kIdentity},
                                         {"identity;q=0.9, gzip;q=0.8", Coding::kIdentity},
                                         {"identity, gzip", Coding::kGzip},
                                         {"br", Coding::kIdentity}}) {
    INFO((row.accept == nullptr ? "none" : row.accept));
    CHECK(coding_for(row.accept) == row.chosen);
  }
}

TEST_CASE("What would not be smaller in a coding goes as it is", "[publish]") {
  const std::string zeros(10'000, '\0');
  for (const Coding coding : {Coding::kGzip, Coding::kZstd}) {
    const auto small = encode(zeros, coding);
    REQUIRE(small);
    CHECK(small->size() < 200);
    CHECK(encode(zeros, coding) == small);
    CHECK_FALSE(encode("", coding));
    CHECK_FALSE(encode("ab", coding));
  }
}

}  // namespace encore::publish

#include "proxy/http/cache_control.h"

#include "proxy/http/targeted.h"
#include "tests/catch.h"
#include "tests/http/heads.h"

namespace encore::http {
namespace {

ResponseDirectives response(std::string_view lines) {
  return parse_response_directives(FieldText(lines).fields());
}
RequestDirectives request(std::string_view lines) {
  return parse_request_directives(FieldText(lines).fields());
}
using Delta = std::optional<std::uint32_t>;

}  // namespace

TEST_CASE("numbers of directives are digits, and what is not counts as stale",
          "[rfc9111][1.2.2][4.2.1][5.2]") {
  const std::pair<std::string_view, Delta> table[] = {
      {"max-age=3600", 3600},
      {"MaX-aGe=3600", 3600},
      {"max-age=003600", 3600},
      {"max-age=\"3600\"", 3600},
      {"max-age=\"36\\00\"", 3600},
      {"max-age=0", 0},
      {"max-age=2147483647", 2147483647},
      {"max-age=2147483648", kDeltaMax},
      {"max-age=99999999999999999999", kDeltaMax},
      {"max-age", 0},
      {"max-age=", 0},
      {"max-age=-1", 0},
      {"max-age=+1", 0},
      {"max-age=3600.5", 0},
      {"max-age=3600a", 0},
      {"max-age=a3600", 0},
      {"max-age='3600'", 0},
      {"max-age=\"3600", 0},
      {"max-age =3600", 0},
      {"max-age= 3600", 0},
      {"max-age=3600 1", 0},
      {"max-age=1, max-age=3600", 1},
      {"max-age=3600, max-age=1", 1},
      {"max-age=3600, max-age=x", 0},
      {"foo=\"max-age=3600\", max-age=1", 1},
      {"foo=\"a,max-age=3600\"", std::nullopt},
      {"foo=\"\\\",max-age=3600\"", std::nullopt},
      {"foobar, max-age=3600", 3600},
      {"max-age=3600;foo", 0},
      {",, max-age=3600 ,", 3600},
      {"x-max-age=3600", std::nullopt},
  };
  for (const auto& [value, seconds] : table) {
    CAPTURE(value);
    CHECK(response("Cache-Control: " + std::string(value)).max_age == seconds);
  }
  const auto two = response("Cache-Control: max-age=60, s-maxage=7\nCache-Control: max-age=30");
  CHECK(two.max_age == Delta(30));
  CHECK(two.s_maxage == Delta(7));
}

TEST_CASE("each directive of a response is found in any case and over all lines",
          "[rfc9111][5.2.2][rfc5861][rfc8246]") {
  const auto all = response(
      "Cache-Control: no-store, NO-CACHE, Public\nCache-Control: private, must-revalidate\n"
      "Cache-Control: proxy-revalidate,must-understand,no-transform,immutable\n"
      "Cache-Control: stale-while-revalidate=5, stale-if-error=x");
  CHECK(all.no_store);
  CHECK(all.no_cache);
  CHECK(all.is_public);
  CHECK(all.is_private);
  CHECK(all.must_revalidate);
  CHECK(all.proxy_revalidate);
  CHECK(all.must_understand);
  CHECK(all.no_transform);
  CHECK(all.immutable);
  CHECK(all.stale_while_revalidate == Delta(5));
  CHECK(all.stale_if_error == Delta(0));
  const auto none = response("Cache-Control: foo, no-stored, x=\"no-store\"");
  CHECK_FALSE(none.no_store);
  CHECK_FALSE(none.no_cache);
}

TEST_CASE("no-cache and private may name fields, and count as bare where they do not",
          "[rfc9111][5.2.2.4][5.2.2.7]") {
  const auto listed = response("Cache-Control: no-cache=\"Set-Cookie, X-A\", private=x-B");
  CHECK_FALSE(listed.no_cache);
  CHECK_FALSE(listed.is_private);
  CHECK(listed.stripped_fields == std::vector<std::string>{"set-cookie", "x-a", "x-b"});
  for (const char* value : {"no-cache", "no-cache=\"\"", "no-cache=", "no-cache=\"a b\"",
                            "no-cache=\"a", "no-cache, no-cache=\"a\""}) {
    CAPTURE(value);
    CHECK(response("Cache-Control: " + std::string(value)).no_cache);
  }
}

TEST_CASE("a request's directives are read, duplicates towards less reuse", "[rfc9111][5.2.1]") {
  const auto all = request(
      "Cache-Control: max-age=9, max-age=5, min-fresh=3, min-fresh=4, max-stale=9, max-stale\n"
      "Cache-Control: no-cache, no-store, only-if-cached, no-transform, stale-if-error=8");
  CHECK(all.max_age == Delta(5));
  CHECK(all.min_fresh == Delta(4));
  CHECK(all.max_stale == Delta(9));
  CHECK(all.stale_if_error == Delta(8));
  CHECK(all.no_cache);
  CHECK(all.no_store);
  CHECK(all.only_if_cached);
  CHECK(all.no_transform);
  CHECK(request("Cache-Control: max-stale").max_stale == Delta(kDeltaMax));
  CHECK(request("Cache-Control: max-stale=x").max_stale == Delta(0));
  CHECK(request("Cache-Control: max-age=x").max_age == Delta(0));
  CHECK_FALSE(request("Cache-Control: min-fresh=x").min_fresh);
}

TEST_CASE("Pragma speaks where Cache-Control is silent", "[rfc9111][5.4]") {
  CHECK(request("Pragma: no-cache").no_cache);
  CHECK(request("Pragma: foo, No-Cache").no_cache);
  CHECK_FALSE(request("Pragma: foo").no_cache);
  CHECK_FALSE(request("Pragma: no-cache\nCache-Control: max-age=5").no_cache);
  CHECK_FALSE(response("Pragma: no-cache").no_cache);
}

TEST_CASE("a targeted field replaces Cache-Control only if all of it parses",
          "[rfc9213][2.1][2.2]") {
  const std::vector<std::string> targets = {"x-ours", "cdn-cache-control"};
  const auto effective = [&](const std::string& lines) {
    return effective_directives(FieldText(lines + "\nCache-Control: max-age=1, no-store").fields(),
                                targets);
  };
  struct Row {
    std::string_view value;
    bool counts;
    Delta max_age;
  };
  const Row table[] = {
      {"max-age=10", true, 10},
      {"max-age=10;a=b;c", true, 10},
      {"max-age=10, foo=(a \"b\" 1.5;q);x, bar=:AQ==:", true, 10},
      {"  max-age=10 ,\tpublic ", true, 10},
      {"max-age=10, max-age=20", true, 20},
      {"max-age=999999999999999", true, kDeltaMax},
      {"max-age=0", true, 0},
      {"max-age=\"10\"", true, 0},
      {"max-age=10.5", true, 0},
      {"max-age=-10", true, 0},
      {"max-age=ten", true, 0},
      {"max-age", true, 0},
      {"public", true, std::nullopt},
      {"max-age=10,", false, 1},
      {"max-age=10,,public", false, 1},
      {"max-age= 10", false, 1},
      {"max-age =10", false, 1},
      {"max-age=10 public", false, 1},
      {"Max-Age=10", false, 1},
      {"max-age=10, &&&", false, 1},
      {"max-age=10, a=\"b", false, 1},
      {"max-age=10, a=?2", false, 1},
      {"max-age=10, a=(b", false, 1},
      {"max-age=10, a=@5", false, 1},
      {"max-age=1000000000000000", false, 1},
      {"max-age=10a", false, 1},
      {"", false, 1},
  };
  for (const Row& row : table) {
    CAPTURE(row.value);
    const auto directives = effective("CDN-Cache-Control: " + std::string(row.value));
    CHECK(directives.targeted == row.counts);
    CHECK(directives.no_store != row.counts);
    CHECK(directives.max_age == row.max_age);
  }
  CHECK(effective("CDN-Cache-Control: max-age=10\nCDN-Cache-Control: max-age=20").max_age ==
        Delta(20));
  CHECK(effective("CDN-Cache-Control: max-age=10\nX-Ours: max-age=20").max_age == Delta(20));
  CHECK(effective("CDN-Cache-Control: max-age=10\nX-Ours: &").max_age == Delta(10));
  CHECK(effective_directives(FieldText("CDN-Cache-Control: max-age=10").fields(), {}).max_age ==
        std::nullopt);
  const auto flags =
      effective("CDN-Cache-Control: no-store=?0, no-cache=1, private=\"A, b\", public=2");
  CHECK_FALSE(flags.no_store);
  CHECK(flags.no_cache);
  CHECK_FALSE(flags.is_private);
  CHECK_FALSE(flags.is_public);
  CHECK(flags.stripped_fields == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a list of more fields than the limit is no list", "[rfc9111][5.2.2.4][limits]") {
  std::string list;
  for (std::size_t i = 0; i < kListedFieldsMax; ++i) list += "f" + std::to_string(i) + ",";
  CHECK_FALSE(response("Cache-Control: no-cache=\"" + list + "\"").no_cache);
  CHECK(response("Cache-Control: no-cache=\"" + list + "more\"").no_cache);
  CHECK(parse_targeted("private=\"" + list + "\"")->stripped_fields.size() == kListedFieldsMax);
  CHECK(parse_targeted("private=\"" + list + "more\"")->is_private);
  std::string members = "a0";
  for (std::size_t i = 1; i < 1024; ++i) members += ",a" + std::to_string(i);
  CHECK(parse_targeted(members));
  CHECK_FALSE(parse_targeted(members + ",more"));
}

}  // namespace encore::http

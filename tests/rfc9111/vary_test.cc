#include "proxy/http/vary.h"

#include "tests/catch.h"
#include "tests/http/heads.h"

namespace encore::http {
namespace {

std::string key(std::string_view names, const std::string& request,
                const VaryOptions& options = {}) {
  std::string out = "old";
  write_variant_key(names, FieldText(request).fields(), options, out);
  return out;
}

std::string names(const std::string& response) {
  return selecting_names(FieldText(response).fields());
}

}  // namespace

TEST_CASE("selecting names are one sorted set over all lines", "[rfc9111][4.1]") {
  CHECK(names("A: b").empty());
  CHECK(names("Vary: Foo") == "foo");
  CHECK(names("Vary: foo, BAR\nVary: Foo,, accept") == "accept,bar,foo");
  CHECK(names("Vary: *") == "*");
  CHECK(names("Vary: foo, *") == "*");
  CHECK(names("Vary: foo\nVary: *") == "*");
  CHECK(names("Vary: foo bar") == "*");
  CHECK(names("Vary:").empty());
}

TEST_CASE("requests select one variant exactly if their fields agree in meaning",
          "[rfc9111][4.1]") {
  struct Row {
    std::string_view names;
    std::string a;
    std::string b;
    bool same;
  };
  const Row table[] = {
      {"foo", "Foo: 1", "foo: 1", true},
      {"foo", "Foo: 1", "Foo: 2", false},
      {"foo", "Foo: 1\nBar: 1", "Foo: 1\nBar: 2", true},
      {"foo", "Foo: 1", "Bar: 1", false},
      {"foo", "Bar: 1", "Bar: 2", true},
      {"foo", "Foo:", "Bar: 2", false},
      {"bar,foo", "Foo: 1\nBar: 2", "Bar: 2\nFoo: 1", true},
      {"bar,foo", "Foo: 1", "Bar: 1", false},
      {"foo", "Foo: 1, 2", "Foo: 1\nFoo: 2", true},
      {"foo", "Foo: 1, 2", "Foo:  1 ,2 ", false},
      {"foo", "Foo: 1, 2", "Foo: 1,, 2", false},
      {"origin", "Origin: https://good", "Origin: ,https://good", false},
      {"origin", "Origin: https://a, https://b", "Origin: https://a\nOrigin: https://b", false},
      {"cookie", "Cookie: a, b", "Cookie: a\nCookie: b", false},
      {"cache-control", "Cache-Control: a, b", "Cache-Control: a\nCache-Control:  ,b,", true},
      {"prefer", "Prefer: a, b", "Prefer: a ,b", true},
      {"foo", "Foo: 1, 2", "Foo: 2, 1", false},
      {"foo", "Foo: A", "Foo: a", false},
      {"foo", "Foo: \"1, 2\"", "Foo: \"1,2\"", false},
      {"accept-language", "Accept-Language: en, de", "Accept-Language: de,en", true},
      {"accept-language", "Accept-Language: en, de", "Accept-Language: EN, De", true},
      {"accept-language", "Accept-Language: en, de", "Accept-Language: en, de, en", true},
      {"accept-language", "Accept-Language: en ; q=0.50", "Accept-Language: en;Q=0.5", true},
      {"accept-language", "Accept-Language: en;q=1.000", "Accept-Language: en", true},
      {"accept-language", "Accept-Language: en;q=0.5, de", "Accept-Language: en, de;q=0.5", false},
      {"accept-language", "Accept-Language: en;q=0.5", "Accept-Language: en;q=0.05", false},
      {"accept-encoding", "Accept-Encoding: gzip, br", "Accept-Encoding: br\nAccept-Encoding: gzip",
       true},
      {"accept-language", "Accept-Language: d e", "Accept-Language: de", false},
      {"accept-language", "Accept-Language: de; q=0.5", "Accept-Language: de;q = 0.5", false},
      {"accept-language", "Accept-Language: de;x=1.0", "Accept-Language: de;x=1", false},
      {"accept", "Accept: a;q=0.5;x=10", "Accept: a;q=0.5;x=1", false},
      {"accept", "Accept: Text/html ; level=1", "Accept: text/HTML;level=1", true},
      {"accept", "Accept: text/html;level=A", "Accept: text/html;level=a", false},
      {"accept", "Accept: a;x=\";q=1\"", "Accept: a;x=\"\"", false},
      {"te", "TE: trailers", "TE: trailers, deflate", true},
      {"te", "TE: trailers", "TE: deflate", false},
      {"accept", "Accept: text/html;level=\"A, B\"", "Accept: text/html;level=\"a, b\"", false},
      {"user-agent", "User-Agent: a (b,c)", "User-Agent: a (b, c)", false},
      {"cookie", "Cookie: a=b,c", "Cookie: a=b, c", false},
  };
  for (const Row& row : table) {
    CAPTURE(row.names, row.a, row.b);
    CHECK((key(row.names, row.a) == key(row.names, row.b)) == row.same);
  }
  // The same values under other names are another variant.
  CHECK(key("foo", "Foo: 1\nBar: 1") != key("bar", "Foo: 1\nBar: 1"));
  CHECK(key("", "Foo: 1").empty());
}

TEST_CASE("Accept-Encoding is reduced to the codings that matter",
          "[rfc9111][4.1][rfc9110][12.5.3]") {
  struct Row {
    std::string request;
    bool plain;
    std::string_view value;
  };
  const Row table[] = {
      {"Accept-Encoding: gzip, deflate, br, zstd", true, "br, gzip, zstd"},
      {"Accept-Encoding: br;q=1.0, gzip;q=0.8, *;q=0.1", false, ""},
      {"Accept-Encoding: GZIP;q=0.5", true, "gzip"},
      {"Accept-Encoding: Gzip,bR", true, "br, gzip"},
      {"Accept-Encoding: br,", true, "br"},
      {"Accept-Encoding: br, ", true, "br"},
      {"Accept-Encoding: br,,gzip", true, "br, gzip"},
      {"Accept-Encoding: br , gzip", true, "br, gzip"},
      {"Accept-Encoding: br,\t gzip", true, "br, gzip"},
      {"Accept-Encoding: zstd,gzip;q=0,br,gzip", true, "br, gzip, zstd"},
      {"Accept-Encoding: gzip,gzip;q=0", true, "identity"},
      {"Accept-Encoding: br;q=0,br x", false, ""},
      {"Accept-Encoding: brr, gzi", true, "identity"},
      {"Accept-Encoding: x-gzip", true, "gzip"},
      {"Accept-Encoding: gzip;q=0, br", true, "br"},
      {"Accept-Encoding: gzip ; q=0.000", true, "identity"},
      {"Accept-Encoding: deflate", true, "identity"},
      {"Accept-Encoding: identity", true, "identity"},
      {"Accept-Encoding:", true, "identity"},
      {"A: b", true, "identity"},
      {"Accept-Encoding: identity;q=0, gzip", false, ""},
      {"Accept-Encoding: *", false, ""},
      {"Accept-Encoding: gz ip", false, ""},
      {"Accept-Encoding: \"gzip\"", false, ""},
      {"Accept-Encoding: gzip;level=9", false, ""},
      {"Accept-Encoding: gzip;q=x", false, ""},
      {"Accept-Encoding: gzip, br\nConnection: accept-encoding", true, "identity"},
  };
  for (const Row& row : table) {
    CAPTURE(row.request);
    const FieldText text(row.request);
    const auto encodings = normalised_accept_encoding(SentFields(text.fields(), {}));
    CHECK(encodings.has_value() == row.plain);
    if (encodings) CHECK(*encodings == row.value);
  }
  const VaryOptions normalising{.normalise_accept_encoding = true};
  const auto of = [&](const std::string& value) {
    return key("accept-encoding", "Accept-Encoding: " + value, normalising);
  };
  CHECK(of("gzip, deflate, br") == of("br;q=0.9, gzip"));
  CHECK(of("gzip") != of("br"));
  CHECK(of("deflate") == key("accept-encoding", "A: b", normalising));
  CHECK(of("*") != of("gzip"));
}

TEST_CASE("what the origin is not told selects nothing", "[rfc9111][4.1][rfc9110][7.6.1]") {
  const VaryOptions reverse{.reverse = true};
  struct Row {
    std::string_view name;
    std::string request;
    bool dropped_in_reverse;
    bool dropped_in_forward;
  };
  const Row table[] = {
      {"accept-language", "Connection: Accept-Language\nAccept-Language: de", true, true},
      {"foo", "Connection: close, foo\nFoo: 1", true, true},
      {"foo", "Connection: close\nFoo: 1", false, false},
      {"authorization", "Connection: authorization\nAuthorization: x", false, false},
      {"upgrade", "Upgrade: x", true, true},
      {"host", "Host: x", true, true},
      {"x-forwarded-proto", "X-Forwarded-Proto: https", true, true},
      {"x-forwarded-host", "X-Forwarded-Host: evil", true, true},
      {"x-forwarded-port", "X-Forwarded-Port: 1", true, true},
      {"x_forwarded_host", "X_Forwarded_Host: evil", true, true},
      {"x-original-url", "X-Original-URL: /admin", true, true},
      {"x-forwarding", "X-Forwarding: 1", false, false},
      {"foo_bar", "Foo_Bar: 1", true, false},
      {"proxy", "Proxy: evil", true, false},
  };
  for (const Row& row : table) {
    CAPTURE(row.name, row.request);
    CHECK((key(row.name, row.request, reverse) == key(row.name, "", reverse)) ==
          row.dropped_in_reverse);
    CHECK((key(row.name, row.request) == key(row.name, "")) == row.dropped_in_forward);
  }
}

TEST_CASE("a request that says too much, or whom it is from, selects nothing",
          "[rfc9111][4.1][limits]") {
  const auto selects = [](std::string_view names, const std::string& request,
                          const VaryOptions& options = {}) {
    std::string out;
    const FieldText text(request);
    const bool good = write_variant_key(names, text.fields(), options, out);
    CHECK(good == (out != "*"));
    return good;
  };
  CHECK(selects("foo", "Foo: " + std::string(kSelectingBytesMax, 'x')));
  CHECK_FALSE(selects("foo", "Foo: " + std::string(kSelectingBytesMax + 1, 'x')));
  CHECK_FALSE(selects("foo", "Foo: " + std::string(kSelectingBytesMax, 'x') + "\nFoo: y"));
  CHECK(selects("bar,foo", "Bar: " + std::string(kSelectingBytesMax, 'x') +
                               "\nFoo: " + std::string(kSelectingBytesMax, 'x')));
  for (const std::string name : {"accept", "cache-control"}) {
    std::string value = "a";
    for (std::size_t i = 1; i < kSelectingMembersMax; ++i) value += ",a";
    CHECK(selects(name, name + ": " + value));
    CHECK_FALSE(selects(name, name + ": " + value + ",a"));
    CHECK_FALSE(selects(name, name + ": " + value + "\n" + name + ": a"));
  }
  CHECK_FALSE(selects("x-forwarded-for", "A: b", {.reverse = true}));
  CHECK_FALSE(selects("forwarded", "A: b", {.reverse = true}));
  CHECK_FALSE(selects("x-forwarded-for", "A: b", {.tells_client = true}));
  CHECK(selects("x-forwarded-for", "A: b"));
}

TEST_CASE("more selecting names than the limit match nothing", "[rfc9111][4.1][limits]") {
  std::string vary = "Vary: ";
  for (std::size_t i = 0; i < kSelectingNamesMax; ++i) vary += "f" + std::to_string(i) + ",";
  CHECK(names(vary) != "*");
  CHECK(names(vary + "f1") != "*");
  CHECK(names(vary + "more") == "*");
}

TEST_CASE("the operator may name what tells requests apart, and leave out what Vary names",
          "[rfc9111][4.1]") {
  VaryOptions options;
  options.further_names = {"cookie", "x-tenant"};
  const FieldText response("Vary: Accept, X-Tenant");
  CHECK(selecting_names(response.fields(), options) == "accept,cookie,x-tenant");
  CHECK(selecting_names(FieldText("A: b").fields(), options) == "cookie,x-tenant");
  options.ignores_vary = true;
  CHECK(selecting_names(response.fields(), options) == "cookie,x-tenant");
  CHECK(selecting_names(FieldText("Vary: *").fields(), options) == "cookie,x-tenant");
}

TEST_CASE("of cookies that end here nothing tells requests apart, of others what goes on",
          "[rfc9111][4.1]") {
  VaryOptions options;
  options.cookies = CookieUse::kNone;
  CHECK(key("cookie", "Cookie: a=1", options) == key("cookie", "Cookie: a=2", options));
  CHECK(key("cookie", "Cookie: a=1", options) == key("cookie", "A: b", options));
  options.cookies = CookieUse::kSome;
  options.cookie_names = {"a", "b"};
  CHECK(key("cookie", "Cookie: x=1; b=2;a=1", options) ==
        key("cookie", "Cookie: a=1\nCookie: b=2", options));
  CHECK(key("cookie", "Cookie: a=1", options) != key("cookie", "Cookie: a=2", options));
  CHECK(key("cookie", "Cookie: x=1", options) == key("cookie", "A: b", options));
  CHECK(key("cookie", "Cookie: A=1", options) == key("cookie", "A: b", options));
  const FieldText request("Cookie: x=1; b=\"2\"; a=1; a=3; c");
  const SentFields sent(request.fields(), options);
  CHECK(sent.kept_cookies() == "a=1; a=3; b=\"2\"");
  CHECK(key("cookie", "Cookie: a=" + std::string(2000, 'x'), options) == "*");
}

TEST_CASE("what a client says in a field that a rule decides selects nothing", "[rfc9111][4.1]") {
  VaryOptions options;
  options.decided_names = {"x-group", "cookie"};
  CHECK(key("x-group", "X-Group: a", options) == key("x-group", "X-GROUP: b", options));
  CHECK(key("x-group", "X-Group: a", options) == key("x-group", "A: b", options));
  CHECK(key("x-groups", "X-Groups: a", options) != key("x-groups", "X-Groups: b", options));
  options.cookies = CookieUse::kSome;
  options.cookie_names = {"a"};
  CHECK(key("cookie", "Cookie: a=1", options) == key("cookie", "Cookie: a=2", options));
}

TEST_CASE("by a field that we write ourselves nothing is selected, and a client's own ends here",
          "[rfc9111][4.1]") {
  VaryOptions options;
  options.own_names = {"x-client-cert"};
  std::string out;
  const FieldText request("X-Client-Cert: CN=a\nFoo: 1");
  CHECK_FALSE(write_variant_key("x-client-cert", request.fields(), options, out));
  CHECK_FALSE(write_variant_key("foo,x-client-cert", request.fields(), options, out));
  CHECK(write_variant_key("foo", request.fields(), options, out));
  CHECK(write_variant_key("x-client-cert", request.fields(), {}, out));
  const FieldText lines(
      "X-Client-Cert: a\nx-client-cert: b\nX_CLIENT-cert: c\nX-Client-Certs: d\nX-Client: e\n"
      "XXClient-Cert: f");
  const SentFields sent(lines.fields(), options);
  std::string left;
  for (const Field& field : lines.fields()) {
    if (!sent.drops(field)) left += field.value;
  }
  CHECK(left == "def");
}

}  // namespace encore::http

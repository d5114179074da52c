#include "proxy/http/uri.h"

#include "tests/catch.h"
#include "tests/http/heads.h"

namespace encore::http {
namespace {

std::string key_of(const Target& target, const KeyOptions& options = {}) {
  std::string key(key_bytes_max(target), '\0');
  key.resize(write_key(target, options, key).bytes);
  return key;
}

// The key of an absolute URI.
std::string key_of(const std::string& uri, const KeyOptions& options = {}) {
  const std::string text = "GET " + uri + " HTTP/1.0\r\n\r\n";
  Target target;
  INFO(uri);
  REQUIRE(resolve_target(request_head(text), Scheme::kHttp, target) == TargetStatus::kOk);
  return key_of(target, options);
}

// The target of the request to the origin for a request with this first line.
std::string origin_form(const std::string& line, const KeyOptions& options) {
  const std::string text = line + "\r\n\r\n";
  const RequestHead head = request_head(text);
  Target target;
  REQUIRE(resolve_target(head, Scheme::kHttp, target) == TargetStatus::kOk);
  if (target.form == TargetForm::kAsterisk)
    return std::string(origin_form(target, head.method, ""));
  std::string key(key_bytes_max(target), '\0');
  const KeyText parts = write_key(target, options, key);
  return std::string(origin_form(target, head.method,
                                 std::string_view(key).substr(0, parts.bytes).substr(parts.path)));
}

}  // namespace

TEST_CASE("a target has the form its method allows, and Host is valid",
          "[http][rfc9112][3.2][smuggling]") {
  struct Row {
    std::string_view head;
    TargetStatus status;
    std::string_view key;
  };
  using S = TargetStatus;
  const Row table[] = {
      {"GET /a HTTP/1.1\r\nHost: h\r\n", S::kOk, "http://h/a"},
      {"GET /a HTTP/1.1\r\nHost: H:8080\r\n", S::kOk, "http://h:8080/a"},
      {"GET /a HTTP/1.1\r\nHost: [::1]:80\r\n", S::kOk, "http://[::1]/a"},
      {"GET //a/b HTTP/1.1\r\nHost: h\r\n", S::kOk, "http://h//a/b"},
      {"GET http://other/a HTTP/1.1\r\nHost: h\r\n", S::kOk, "http://other/a"},
      {"GET http://other HTTP/1.1\r\nHost:\r\n", S::kOk, "http://other/"},
      {"GET HTTPS://other?q HTTP/1.1\r\nHost: h\r\n", S::kOk, "https://other/?q"},
      {"OPTIONS * HTTP/1.1\r\nHost: h\r\n", S::kOk, ""},
      {"OPTIONS * HTTP/1.1\r\nHost:\r\n", S::kOk, ""},
      {"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n", S::kOk, ""},
      {"CONNECT [::1]:443 HTTP/1.1\r\nHost: x\r\n", S::kOk, ""},
      {"GET /a HTTP/1.0\r\n", S::kOk, "http:///a"},
      {"GET /a HTTP/1.1\r\n", S::kMissingHost, ""},
      {"GET http://h/a HTTP/1.1\r\n", S::kMissingHost, ""},
      {"CONNECT h:443 HTTP/1.1\r\n", S::kMissingHost, ""},
      {"GET /a HTTP/1.1\r\nHost:\r\n", S::kMissingHost, ""},
      {"GET /a HTTP/1.1\r\nHost: h\r\nHost: h\r\n", S::kSeveralHosts, ""},
      {"GET /a HTTP/1.0\r\nHost: h\r\nHost: g\r\n", S::kSeveralHosts, ""},
      {"GET http://h/ HTTP/1.1\r\nHost: h\r\nHost: h\r\n", S::kSeveralHosts, ""},
      {"GET /a HTTP/1.1\r\nHost: h, g\r\n", S::kBadHost, ""},
      {"GET /a HTTP/1.1\r\nHost: h g\r\n", S::kBadHost, ""},
      {"GET /a HTTP/1.1\r\nHost: h/x\r\n", S::kBadHost, ""},
      {"GET /a HTTP/1.1\r\nHost: u@h\r\n", S::kBadHost, ""},
      {"GET /a HTTP/1.1\r\nHost: h:x\r\n", S::kBadHost, ""},
      {"GET /a HTTP/1.1\r\nHost: h:0\r\n", S::kBadHost, ""},
      {"GET /a HTTP/1.1\r\nHost: h:65536\r\n", S::kBadHost, ""},
      {"GET /a HTTP/1.1\r\nHost: h:80:80\r\n", S::kBadHost, ""},
      {"GET /a HTTP/1.1\r\nHost: :80\r\n", S::kBadHost, ""},
      {"GET /a HTTP/1.1\r\nHost: h%2e\r\n", S::kBadHost, ""},
      {"GET /a HTTP/1.1\r\nHost: [::1\r\n", S::kBadHost, ""},
      {"GET /a HTTP/1.1\r\nHost: [::g]\r\n", S::kBadHost, ""},
      {"GET /a HTTP/1.1\r\nHost: [::1]x\r\n", S::kBadHost, ""},
      {"GET /a HTTP/1.1\r\nHost: ::1\r\n", S::kBadHost, ""},
      {"GET http://h/ HTTP/1.1\r\nHost: h\\g\r\n", S::kBadHost, ""},
      {"GET a HTTP/1.1\r\nHost: h\r\n", S::kBadTarget, ""},
      {"GET * HTTP/1.1\r\nHost: h\r\n", S::kBadTarget, ""},
      {"GET h:80 HTTP/1.1\r\nHost: h\r\n", S::kBadTarget, ""},
      {"GET http:/h HTTP/1.1\r\nHost: h\r\n", S::kBadTarget, ""},
      {"GET http:///a HTTP/1.1\r\nHost: h\r\n", S::kBadTarget, ""},
      {"GET http://h\\g/ HTTP/1.1\r\nHost: h\r\n", S::kBadTarget, ""},
      {"GET http://h:99999/ HTTP/1.1\r\nHost: h\r\n", S::kBadTarget, ""},
      {"CONNECT h HTTP/1.1\r\nHost: h\r\n", S::kBadTarget, ""},
      {"CONNECT /a HTTP/1.1\r\nHost: h\r\n", S::kBadTarget, ""},
      {"CONNECT http://h/ HTTP/1.1\r\nHost: h\r\n", S::kBadTarget, ""},
      {"GET http://u:p@h/ HTTP/1.1\r\nHost: h\r\n", S::kUserinfo, ""},
      {"CONNECT u@h:443 HTTP/1.1\r\nHost: h\r\n", S::kUserinfo, ""},
      {"GET ftp://h/ HTTP/1.1\r\nHost: h\r\n", S::kUnsupportedScheme, ""},
      {"GET file:///etc/passwd HTTP/1.1\r\nHost: h\r\n", S::kUnsupportedScheme, ""},
  };
  for (const Row& row : table) {
    CAPTURE(row.head);
    const std::string text = std::string(row.head) + "\r\n";
    Target target;
    CHECK(to_string(resolve_target(request_head(text), Scheme::kHttp, target)) ==
          to_string(row.status));
    if (!row.key.empty()) CHECK(key_of(target) == row.key);
  }
}

TEST_CASE("keys of equivalent targets are equal", "[http][rfc3986][6.2.2]") {
  const std::pair<std::string, std::string> table[] = {
      {"http://Example.ORG", "http://example.org/"},
      {"HTTP://example.org:80/", "http://example.org/"},
      {"http://example.org:/", "http://example.org/"},
      {"http://example.org:00080/", "http://example.org/"},
      {"https://example.org:443/", "https://example.org/"},
      {"https://example.org:80/", "https://example.org:80/"},
      {"http://[2001:DB8::1]:8080/", "http://[2001:db8::1]:8080/"},
      {"http://h/A/b", "http://h/A/b"},
      {"http://h/%41%7e%2d%5F", "http://h/A~-_"},
      {"http://h/%2f%3a%c3%a4", "http://h/%2F%3A%C3%A4"},
      {"http://h/%", "http://h/%"},
      {"http://h/%4", "http://h/%4"},
      {"http://h/%zz", "http://h/%zz"},
      {"http://h/%41%%37%32", "http://h/A%%37%32"},
      {"http://h/%4/%41", "http://h/%4/A"},
      {"http://h/%2541", "http://h/%2541"},
      {"http://h/a/./b", "http://h/a/b"},
      {"http://h/a/../b", "http://h/b"},
      {"http://h/a/b/..", "http://h/a/"},
      {"http://h/a/b/.", "http://h/a/b/"},
      {"http://h/../../a", "http://h/a"},
      {"http://h/..", "http://h/"},
      {"http://h/a/%2e%2E/b", "http://h/b"},
      {"http://h/a//../b", "http://h/a/b"},
      {"http://h/a//b", "http://h/a//b"},
      {"http://h/.a/..b/c..", "http://h/.a/..b/c.."},
      {"http://h/index.html", "http://h/index.html"},
      {"http://h/a?x=%7e&y=/../.", "http://h/a?x=%7e&y=/../."},
      {"http://h/a?", "http://h/a?"},
      {"http://h?a", "http://h/?a"},
      {"http://h/a?b?c", "http://h/a?b?c"},
  };
  for (const auto& [uri, key] : table) CHECK(key_of(uri) == key);
}

TEST_CASE("a query is sorted and thinned out where that is asked for", "[http]") {
  const KeyOptions sorted{.sort_query = true, .drop_query = {}};
  CHECK(key_of("http://h/?b=2&a=1&b=1", sorted) == "http://h/?a=1&b=1&b=2");
  const KeyOptions dropping{.sort_query = false, .drop_query = {"utm_*", "sid"}};
  CHECK(key_of("http://h/?utm_source=x&a=1&sid=9&side=2&sid", dropping) == "http://h/?a=1&side=2");
  CHECK(key_of("http://h/?sid=9", dropping) == "http://h/");
}

TEST_CASE("what is forwarded has the key's path, and the query as it was sent",
          "[http][rfc9110][4.2.3]") {
  const std::pair<std::string, std::string> table[] = {
      {"GET http://h/a/../%7e?x HTTP/1.0", "/~?x"},
      {"GET http://h/a/%2e%2E/b%2f%c3?%7e/../ HTTP/1.0", "/b%2F%C3?%7e/../"},
      {"GET http://h/.. HTTP/1.0", "/"},
      {"GET http://h/%%37 HTTP/1.0", "/%%37"},
      {"GET http://h HTTP/1.0", "/"},
      {"GET http://h?x HTTP/1.0", "/?x"},
      {"OPTIONS http://h HTTP/1.0", "*"},
      {"OPTIONS * HTTP/1.0", "*"},
      {"OPTIONS http://h/ HTTP/1.0", "/"},
  };
  for (const auto& [line, form] : table) {
    CHECK(origin_form(line, {}) == form);
  }
}

TEST_CASE("the origin is asked for the query that the key has", "[http]") {
  const KeyOptions options = {.sort_query = true, .drop_query = {"utm_*", "x"}};
  const std::pair<std::string, std::string> table[] = {
      {"GET /a?b=2&utm_a=1&a=1&x=3 HTTP/1.0", "/a?a=1&b=2"},
      {"GET /a?utm_a=1 HTTP/1.0", "/a"},
      {"GET /a? HTTP/1.0", "/a?"},
      {"OPTIONS http://h?x=1 HTTP/1.0", "/"},
  };
  for (const auto& [line, form] : table) {
    CHECK(origin_form(line, options) == form);
  }
}

TEST_CASE("references are resolved against the target", "[http][rfc3986][5.2]") {
  const std::string text = "POST http://h:81/a/b?q HTTP/1.0\r\n\r\n";
  Target base;
  REQUIRE(resolve_target(request_head(text), Scheme::kHttp, base) == TargetStatus::kOk);
  const std::pair<std::string, std::string> table[] = {
      {"http://h:81/x#f", "http://h:81/x"},
      {"https://g", "https://g/"},
      {"//g:82/x", "http://g:82/x"},
      {"/x?y", "http://h:81/x?y"},
      {"x", "http://h:81/a/x"},
      // Bytes beyond ASCII are taken as percent-encoded.
      {"http://h:81/\xc3\xa9?\xe4", "http://h:81/%C3%A9?%E4"},
      {"/\xc3\xa9", "http://h:81/%C3%A9"},
      {"\xe4", "http://h:81/a/%E4"},
      {"../x", "http://h:81/x"},
      {"?z", "http://h:81/a/b?z"},
      {"", "http://h:81/a/b?q"},
      {"#f", "http://h:81/a/b?q"},
  };
  for (const auto& [reference, key] : table) {
    CAPTURE(reference);
    std::string storage;
    Target target;
    REQUIRE(resolve_reference(reference, base, storage, target));
    CHECK(key_of(target) == key);
    CHECK(same_origin(target, base) == key.starts_with("http://h:81/"));
  }
  for (const char* bad : {"mailto:a@b", "ftp://h/", "http://u@h/", "//", "a b", "http:x",
                          "//\xc3\xa9/", "/\xc3\xa9\x7f", "/\xc3\xa9 "}) {
    CAPTURE(bad);
    std::string storage;
    Target target;
    CHECK_FALSE(resolve_reference(bad, base, storage, target));
  }
}

}  // namespace encore::http

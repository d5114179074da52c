// The request that an origin gets for a client's.
#include "proxy/origin/origin_request.h"

#include <algorithm>
#include <string>
#include <vector>

#include "proxy/request/sent_head.h"
#include "tests/catch.h"
#include "tests/request/requests.h"

namespace encore::server {
namespace {

using config::Mode;

config::Config one_route(config::HostHeader host = config::HostHeader::kPreserve) {
  config::Config config;
  config::Origin& origin = config.origin.emplace_back();
  origin.servers = {"http://backend:81"};
  origin.host_header = host;
  return config;
}

// The lines of what is asked, the first one first.
std::vector<std::string> lines_of(const RequestContext& request,
                                  const OriginRequestOptions& options = {}) {
  std::string text = "what was there before";
  const OriginServer* server =
      request.is_forward() ? nullptr : &request.route->group().servers().front();
  build_origin_request(request, server, options, text);
  REQUIRE(text.ends_with("\r\n\r\n"));
  std::vector<std::string> lines;
  for (std::size_t at = 0; at + 2 < text.size();) {
    const std::size_t end = text.find("\r\n", at);
    lines.push_back(text.substr(at, end - at));
    at = end + 2;
  }
  return lines;
}
std::vector<std::string> asked(Mode mode, std::string_view text,
                               const OriginRequestOptions& options = {},
                               const config::Config& config = one_route(),
                               const char* from = "127.0.0.1") {
  Requests requests(config);
  REQUIRE(requests.make(mode, text, from).status == 0);
  return lines_of(
      *RequestContext::make(requests.runtime, requests.view, requests.text, requests.client),
      options);
}
bool has(const std::vector<std::string>& lines, std::string_view line) {
  return std::ranges::find(lines, line) != lines.end();
}
bool has_field(const std::vector<std::string>& lines, std::string_view name) {
  return std::ranges::any_of(lines,
                             [&](const std::string& line) { return line.starts_with(name); });
}

TEST_CASE("requests are alike for access if they differ in nothing that may be a credential",
          "[origin][request]") {
  const auto text_of = [](std::string_view lines, const char* from = "10.0.0.1") {
    Requests requests(one_route());
    REQUIRE(requests.make(Mode::kReverse, lines, from).status == 0);
    return access_text(
        *RequestContext::make(requests.runtime, requests.view, requests.text, requests.client));
  };
  const std::string front = "GET /a?b HTTP/1.1\nHost: h\n";
  const std::string plain = text_of(front + "Accept: text/html\n");
  for (const char* const line :
       {"Range: bytes=0-1", "If-None-Match: *", "Cache-Control: no-cache", "Pragma: no-cache",
        "X-Request-Id: 1", "TraceParent: 1", "tracestate: 1", "X-Forwarded-For: 10.0.0.2",
        "Connection: close", "Via: 1.1 a"}) {
    INFO(line);
    CHECK(text_of(front + "Accept: text/html\n" + line + "\n") == plain);
  }
  for (const char* const line :
       {"Private-Token: 1", "Authorization: Bearer 1", "Cookie: a=1", "Accept: text/plain",
        "User-Agent: a", "Referer: http://h/", "X-Any:"}) {
    INFO(line);
    CHECK(text_of(front + "Accept: text/html\n" + line + "\n") != plain);
  }
  CHECK(text_of(front + "Accept: text/plain\n") != plain);
  CHECK(text_of(front + "Accept: text/html\n", "10.0.0.2") != plain);
  CHECK(text_of("GET /a?c HTTP/1.1\nHost: h\nAccept: text/html\n") != plain);
  CHECK(text_of("GET /a?b HTTP/1.1\nHost: g\nAccept: text/html\n") != plain);
  CHECK(text_of("HEAD /a?b HTTP/1.1\nHost: h\nAccept: text/html\n") == plain);
}

TEST_CASE("an origin is asked in its own form, by the name that the key has", "[origin][request]") {
  auto lines = asked(Mode::kForward, "GET http://A.example:80/x?y HTTP/1.1\nHost: other\n");
  CHECK(lines[0] == "GET /x?y HTTP/1.1");
  CHECK(lines[1] == "Host: a.example");
  lines = asked(Mode::kForward, "GET http://a.example:8080 HTTP/1.0\n");
  CHECK(lines[0] == "GET / HTTP/1.1");
  CHECK(lines[1] == "Host: a.example:8080");
  lines = asked(Mode::kReverse, "GET /x HTTP/1.1\nHost: site\n");
  CHECK(lines[1] == "Host: site");
  lines = asked(Mode::kReverse, "GET /x HTTP/1.1\nHost: site\n", {},
                one_route(config::HostHeader::kOrigin));
  CHECK(lines[1] == "Host: backend:81");
  CHECK(std::ranges::count_if(lines, [](const auto& l) { return l.starts_with("Host"); }) == 1);
}

TEST_CASE("what is of one hop, or the client's about us, is not passed on", "[origin][request]") {
  const auto lines =
      asked(Mode::kReverse,
            "GET /x HTTP/1.1\nHost: site\nConnection: X-Hop, close\nX-Hop: 1\nKeep-Alive: 1\n"
            "Proxy-Authorization: secret\nUpgrade: h2c\nX-Forwarded-For: 10.0.0.1\n"
            "Forwarded: for=10.0.0.1\nX-Kept: 1\n",
            {}, one_route(), "192.0.2.7");
  for (const auto* name : {"X-Hop", "Keep-Alive", "Proxy-Authorization", "Upgrade", "Connection"}) {
    CAPTURE(name);
    CHECK_FALSE(has_field(lines, name));
  }
  CHECK(has(lines, "X-Kept: 1"));
  CHECK(has(lines, "X-Forwarded-For: 192.0.2.7"));
  CHECK(has(lines, "X-Forwarded-Host: site"));
  CHECK(has(lines, "Forwarded: for=192.0.2.7;host=\"site\";proto=http"));
  const auto forward = asked(Mode::kForward, "GET http://a/ HTTP/1.1\nHost: a\n");
  CHECK_FALSE(has_field(forward, "X-Forwarded"));
  CHECK_FALSE(has_field(forward, "Forwarded"));
}

TEST_CASE("an IPv6 client is named as the field wants it", "[origin][request]") {
  const auto lines =
      asked(Mode::kReverse, "GET /x HTTP/1.1\nHost: site\n", {}, one_route(), "2001:db8::1");
  CHECK(has(lines, "X-Forwarded-For: 2001:db8::1"));
  CHECK(has(lines, "Forwarded: for=\"[2001:db8::1]\";host=\"site\";proto=http"));
}

TEST_CASE("Via names each hop in one field", "[origin][request]") {
  CHECK(asked(Mode::kForward, "GET http://a/ HTTP/1.1\nHost: a\nVia: 1.1 one\nVia: 1.0 two\n")
            .back() == "Via: 1.1 one, 1.0 two, 1.1 encore-test");
  CHECK(asked(Mode::kForward, "GET http://a/ HTTP/1.0\nHost: a\n").back() ==
        "Via: 1.0 encore-test");
}

TEST_CASE("for the whole neither conditions nor ranges of the client go along",
          "[origin][request]") {
  const std::string_view text =
      "GET /x HTTP/1.1\nHost: site\nRange: bytes=0-1\nIf-Range: \"a\"\nIf-None-Match: \"a\"\n"
      "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\nIf-Match: \"a\"\n"
      "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n";
  const auto own = asked(Mode::kReverse, text);
  for (const auto* name : {"Range", "If-Range", "If-None-Match", "If-Modified-Since", "If-Match",
                           "If-Unmodified-Since"}) {
    CAPTURE(name);
    CHECK(has_field(own, name));
  }
  const auto whole = asked(Mode::kReverse, text,
                           {.whole = true, .validation_fields = "If-None-Match: \"ours\"\r\n"});
  CHECK_FALSE(has_field(whole, "Range"));
  CHECK_FALSE(has_field(whole, "If-M"));
  CHECK_FALSE(has_field(whole, "If-R"));
  CHECK_FALSE(has_field(whole, "If-U"));
  CHECK_FALSE(has(whole, "If-None-Match: \"a\""));
  CHECK(has(whole, "If-None-Match: \"ours\""));
}

TEST_CASE("content is framed by what was understood of it", "[origin][request]") {
  CHECK(has(asked(Mode::kReverse, "POST /x HTTP/1.1\nHost: s\nContent-Length: 007\n"),
            "Content-Length: 7"));
  CHECK(has(asked(Mode::kReverse, "POST /x HTTP/1.1\nHost: s\nContent-Length: 0\n"),
            "Content-Length: 0"));
  const auto chunked =
      asked(Mode::kReverse, "POST /x HTTP/1.1\nHost: s\nTransfer-Encoding: chunked\n");
  CHECK(has(chunked, "Transfer-Encoding: chunked"));
  CHECK_FALSE(has_field(chunked, "Content-Length"));
  CHECK_FALSE(has_field(asked(Mode::kReverse, "GET /x HTTP/1.1\nHost: s\n"), "Content-Length"));
}

TEST_CASE("a length that is known of chunks goes in their place", "[origin][request]") {
  const auto lines =
      asked(Mode::kReverse, "POST /x HTTP/1.1\nHost: s\nTransfer-Encoding: chunked\n",
            {.validation_fields = {}, .length = 12});
  CHECK(has(lines, "Content-Length: 12"));
  CHECK_FALSE(has_field(lines, "Transfer-Encoding"));
  CHECK(has(asked(Mode::kReverse, "POST /x HTTP/1.1\nHost: s\nContent-Length: 7\n",
                  {.validation_fields = {}, .length = 0}),
            "Content-Length: 0"));
}

TEST_CASE("Connection names what is of this hop: trailers, another protocol, or both",
          "[origin][request]") {
  for (const bool trailers : {false, true}) {
    for (const bool upgrade : {false, true}) {
      CAPTURE(trailers, upgrade);
      const auto lines =
          asked(Mode::kReverse, std::string("GET /x HTTP/1.1\nHost: s\nConnection: ") +
                                    (trailers ? "TE, " : "") + (upgrade ? "upgrade, " : "") +
                                    "x-a\n" + (trailers ? "TE: trailers\n" : "") +
                                    (upgrade ? "Upgrade: raw/1\n" : ""));
      CHECK(has(lines, "TE: trailers") == trailers);
      CHECK(has(lines, "Upgrade: raw/1") == upgrade);
      CHECK(has(lines, "Connection: TE") == (trailers && !upgrade));
      CHECK(has(lines, "Connection: upgrade") == (!trailers && upgrade));
      CHECK(has(lines, "Connection: TE, upgrade") == (trailers && upgrade));
      CHECK(has_field(lines, "Connection") == (trailers || upgrade));
      CHECK(std::ranges::count_if(lines, [](const auto& line) {
              return line.starts_with("TE:") || line.starts_with("Upgrade:");
            }) == (trailers ? 1 : 0) + (upgrade ? 1 : 0));
    }
  }
}

TEST_CASE("another proxy is sent the whole target, and the last one makes it a star",
          "[origin][request]") {
  const auto first_line = [](std::string_view text, bool to_proxy) {
    return asked(Mode::kForward, text, {.to_proxy = to_proxy, .validation_fields = {}})[0];
  };
  const std::string get = "GET http://A.example:81/x?y HTTP/1.1\nHost: a\n";
  CHECK(first_line(get, true) == "GET http://a.example:81/x?y HTTP/1.1");
  CHECK(first_line(get, false) == "GET /x?y HTTP/1.1");
  const std::string options = "OPTIONS http://a.example HTTP/1.1\nHost: a\n";
  CHECK(first_line(options, true) == "OPTIONS http://a.example HTTP/1.1");
  CHECK(first_line(options, false) == "OPTIONS * HTTP/1.1");
}

TEST_CASE("hops are counted down where that is meant", "[origin][request]") {
  CHECK(has(asked(Mode::kForward, "OPTIONS http://a/ HTTP/1.1\nHost: a\nMax-Forwards: 5\n"),
            "Max-Forwards: 4"));
  const auto counted = [](std::string_view hops) {
    return asked(Mode::kForward,
                 "OPTIONS http://a/ HTTP/1.1\nHost: a\nMax-Forwards: " + std::string(hops) + "\n");
  };
  CHECK(has(counted("9223372036854775807"), "Max-Forwards: 9223372036854775806"));
  for (const std::string_view large :
       {"9223372036854775808", "18446744073709551616", "99999999999999999999999999999999999999"}) {
    CAPTURE(large);
    CHECK(has(counted(large), "Max-Forwards: 9223372036854775807"));
  }
  CHECK(has(counted("many"), "Max-Forwards: many"));
  CHECK(has(asked(Mode::kForward,
                  "POST http://a/ HTTP/1.1\nHost: a\nMax-Forwards: 5\n"
                  "Content-Length: 0\n"),
            "Max-Forwards: 5"));
}

TEST_CASE("an expectation goes along unless it was answered here", "[origin][request]") {
  const std::string_view text =
      "POST /x HTTP/1.1\nHost: s\nContent-Length: 1\nExpect: 100-continue\n";
  CHECK(has(asked(Mode::kReverse, text), "Expect: 100-continue"));
  CHECK_FALSE(has_field(asked(Mode::kReverse, text, {.validation_fields = {}, .drop_expect = true}),
                        "Expect"));
}

}  // namespace
}  // namespace encore::server

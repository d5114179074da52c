// Explanations by the configuration alone.
#include "proxy/process/explain.h"

#include <string>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

config::Config forwarding() {
  config::Config config;
  config.listen = {{.address = "127.0.0.1:3128", .mode = config::Mode::kForward}};
  return config;
}

config::Config reversing() {
  config::Config config;
  config.listen = {{.address = "127.0.0.1:80", .mode = config::Mode::kReverse}};
  config::Origin origin;
  origin.host = "a.example";
  origin.servers = {"http://127.0.0.1:8080"};
  config.origin = {origin};
  return config;
}

std::string said(const config::Config& config, const Explained& asked) {
  const auto text = explain(config, asked);
  return text ? *text : "error: " + text.error().message;
}

// The text behind a label; of one that is there several times the first.
std::string line(const std::string& text, const std::string& label) {
  const std::string all = "\n" + text;
  const std::size_t at = all.find("\n" + label + " ");
  if (at == std::string::npos) return "none";
  const std::size_t begin = all.find_first_not_of(' ', at + 1 + label.size());
  return all.substr(begin, all.find('\n', begin) - begin);
}

}  // namespace

TEST_CASE("a request that cannot be is refused, with what is wrong", "[process][explain]") {
  const auto [asked, fault] = GENERATE(values<std::pair<Explained, std::string>>({
      {{.url = "nonsense"}, "\"nonsense\" is not an http(s) URL"},
      {{.url = "ftp://a.example/"}, "\"ftp://a.example/\" is not an http(s) URL"},
      {{.url = "http://a.example/", .method = "GET /evil HTTP/1.1\r\nX: y"}, "is not a method"},
      {{.url = "http://a.example/", .method = ""}, "\"\" is not a method"},
      {{.url = "http://a.example/", .client = "me"}, "\"me\" is not an address"},
      {{.url = "http://a.example/", .listener = "127.0.0.1:1"},
       "is not the address of a [[listen]]"},
      {{.url = "http://a.example/", .fields = {"X-No-Colon"}}, "is not a field"},
      {{.url = "http://a.example/", .fields = {"X: y\r\nHost: b.example"}}, "is not a field"},
      {{.url = "http://a.example/", .fields = {"Content-Length : 1"}}, "space-before-colon"},
  }));
  CAPTURE(asked.url, asked.method, asked.client);
  const std::string text = said(forwarding(), asked);
  CHECK(text.starts_with("error: "));
  CHECK(text.find(fault) != std::string::npos);
}

TEST_CASE("a forward request is told its key, its origin and what it is sent",
          "[process][explain]") {
  const std::string text =
      said(forwarding(), {.url = "http://A.example:80/b/../c?d=e",
                          .fields = {"Accept: text/html", "Connection: x-y", "X-Y: secret"}});
  CAPTURE(text);
  CHECK(line(text, "request") == "GET http://A.example:80/b/../c?d=e of 127.0.0.1");
  CHECK(line(text, "listener") == "127.0.0.1:3128 forward");
  CHECK(line(text, "rule") == "none holds");
  CHECK(line(text, "key") == "http://a.example/c?d=e");
  CHECK(line(text, "admission") == "second-hit");
  CHECK(line(text, "ignored") == "nothing");
  CHECK(line(text, "collapse") == "yes");
  CHECK(line(text, "origin") == "as requested");
  CHECK(line(text, "is asked") == "GET /c?d=e HTTP/1.1");
  CHECK(text.find("Accept: text/html") != std::string::npos);
  // Hop-by-hop fields are not sent on.
  CHECK(text.find("secret") == std::string::npos);
}

TEST_CASE("another method is sent as it is", "[process][explain]") {
  const std::string text =
      said(forwarding(), {.url = "http://a.example/", .method = "POST", .fields = {}});
  CAPTURE(text);
  CHECK(line(text, "request") == "POST http://a.example/ of 127.0.0.1");
  CHECK(line(text, "is asked") == "POST / HTTP/1.1");
}

TEST_CASE("the rule that holds is named, with what it changes", "[process][explain]") {
  config::Config config = reversing();
  config::Rule images;
  images.name = "images";
  images.path = {"/images/*"};
  images.admission = config::Policy::kAlways;
  images.fresh = std::chrono::hours(2);
  images.ignore = {"no-store", "set-cookie"};
  images.collapse = false;
  images.key_fields = {"x-device"};
  config::Rule late;
  late.content_type = {"video/*"};
  config.rule = {images, late};
  const std::string text = said(config, {.url = "http://a.example/images/1.png"});
  CAPTURE(text);
  CHECK(line(text, "rule") == "images");
  CHECK(text.find("but for rule-1, which need the response's content_type") != std::string::npos);
  CHECK(line(text, "admission") == "always, by the rule");
  CHECK(line(text, "fresh") == "2h, by the rule");
  CHECK(line(text, "ignored") == "no-store, set-cookie");
  CHECK(line(text, "collapse") == "no");
  CHECK(line(text, "told apart by") == "Vary, x-device");
  CHECK(line(text, "origin").find("a.example") == 0);
  CHECK(line(text, "origin").find("127.0.0.1:8080") != std::string::npos);
  CHECK(line(said(config, {.url = "http://a.example/other"}), "rule") == "none holds");
}

TEST_CASE("what is answered here has its status and why", "[process][explain]") {
  config::Config config = reversing();
  CHECK(line(said(config, {.url = "http://b.example/"}), "answer").find("404 here: ") == 0);
  config.listen[0].deny_paths = {"/private*"};
  CHECK(line(said(config, {.url = "http://a.example/private/x"}), "answer") ==
        "403 here: path-not-allowed");
  CHECK(line(said(config, {.url = "http://a.example/public"}), "answer") == "none");
  config.listen[0].redirect_https = true;
  CHECK(line(said(config, {.url = "http://a.example/public"}), "answer") ==
        "301 here: redirect-https");
  config.acme.challenge_directory = "/nowhere";
  CHECK(line(said(config, {.url = "http://a.example/.well-known/acme-challenge/x"}), "answer") ==
        "200 or 404 here: acme");
  CHECK(line(said(forwarding(), {.url = "http://a.example/", .client = "192.0.2.1"}), "answer")
            .find("403 here: ") == 0);
}

TEST_CASE("an https URL is told by which CONNECT it comes", "[process][explain]") {
  const auto connect = [](const std::string& url) {
    return line(said(forwarding(), {.url = url}), "connect");
  };
  CHECK(connect("https://A.example/") == "a.example:443 passes unread: [intercept] has no hosts");
  CHECK(connect("https://a.example:9443/").starts_with("a.example:9443 is refused"));
  CHECK(connect("https://[2001:db8::1]:8443/x").starts_with("[2001:db8::1]:8443 "));
  CHECK(connect("http://a.example/") == "none");
}

}  // namespace encore::server

// The resources that the proxy itself publishes: for which clients, and as which response.
#include "proxy/exchange/published.h"

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>

#include "filter/published/form.h"
#include "proxy/ca/making.h"
#include "tests/catch.h"
#include "tests/exchange/some_request.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

using publish::ChangedKeys;
using publish::HourlyFilters;

constexpr WallTime kStart = publish::start_of(publish::Hour{490'000}) + std::chrono::minutes(10);

ChangedKeys few_keys() {
  auto options = filter::FilterParameters{};
  options.layout = filter::Layout::kClassic;
  options.bits = 9'600;
  options.hashes = 7;
  options.capacity = 1000;
  auto made = HourlyFilters::create({.keep = 48, .filter = options}, kStart);
  REQUIRE(made);
  return ChangedKeys(std::move(*made));
}

struct Published {
  explicit Published(const std::function<void(config::Config&)>& change = {}) {
    config::Config config;
    config.filters.publish = {"changed"};
    config.filters.path = "/filters";
    config.admin.allow_hosts = {"encore.example"};
    if (change) change(config);
    runtime = some_runtime(config);
  }
  SyntheticResponse ask(const std::string& path, std::string_view method = "GET",
                        std::string_view fields = "", bool is_there = true) {
    const auto request = some_request(std::string(method) + " " + path +
                                          " HTTP/1.1\nHost: encore.example\n" + std::string(fields),
                                      runtime);
    REQUIRE(is_published(*request));
    return published_answer(is_there ? &*resources : nullptr, *request, kStart,
                            "Sun, 06 Nov 1994 08:49:40 GMT", status);
  }

  ChangedKeys changed = few_keys();
  std::optional<publish::Resources> resources{publish::Resources::Sources{.changed = &changed}};
  std::shared_ptr<const Runtime> runtime;
  http::CacheStatus status{};
};

std::string field(const SyntheticResponse& response, const std::string& name) {
  const std::string line = "\r\n" + name + ": ";
  const std::size_t at = response.head.find(line);
  if (at == std::string::npos) return "none";
  const std::size_t begin = at + line.size();
  return response.head.substr(begin, response.head.find("\r\n", begin) - begin);
}

}  // namespace

TEST_CASE("a published filter is a whole response, to HEAD without its content",
          "[exchange][published]") {
  Published it;
  const std::string path = "/filters/changed/1970-01-01T00";
  const SyntheticResponse get = it.ask("/filters/changed/");
  const SyntheticResponse head = it.ask("/filters/changed/", "HEAD");
  CHECK(get.outcome == Outcome::kPublished);
  CHECK(get.status == head.status);
  CHECK(get.head.starts_with("HTTP/1.1 " + std::to_string(get.status) + " "));
  CHECK(field(get, "Date") == "Sun, 06 Nov 1994 08:49:40 GMT");
  CHECK(field(get, "Content-Type") != "none");
  CHECK_FALSE(get.body.empty());
  CHECK(field(get, "Content-Length") == std::to_string(get.body.size()));
  CHECK(head.body.empty());
  CHECK(field(head, "Content-Length") == field(get, "Content-Length"));
  CHECK(it.ask(path).status == 404);
}

TEST_CASE("a 304 has no length", "[exchange][published]") {
  Published it;
  it.changed.note("http://h/a", kStart);
  const std::string path = "/filters/changed/" + publish::to_path(publish::Hour{490'000});
  const SyntheticResponse whole = it.ask(path);
  REQUIRE(whole.status == 200);
  const std::string tag = field(whole, "ETag");
  REQUIRE(tag != "none");
  const SyntheticResponse again = it.ask(path, "GET", "If-None-Match: " + tag + "\n");
  CHECK(again.status == 304);
  CHECK(field(again, "Content-Length") == "none");
  CHECK(again.body.empty());
}

TEST_CASE("what may not be had, or is not there, is refused and not stored",
          "[exchange][published]") {
  const std::string path = "/filters/changed/";
  Published closed([](config::Config& config) { config.filters.allow_clients = {"192.0.2.0/24"}; });
  const SyntheticResponse refused = closed.ask(path);
  CHECK(refused.status == 403);
  CHECK(refused.body.contains("allow_clients"));
  CHECK(field(refused, "Cache-Control") == "no-store");
  CHECK(field(refused, "Content-Type") == "text/plain; charset=utf-8");
  Published nothing;
  const SyntheticResponse missing = nothing.ask(path, "GET", "", false);
  CHECK(missing.status == 404);
  CHECK(field(missing, "Cache-Control") == "no-store");
}

TEST_CASE("what is published is chosen by its path, for whom it is", "[exchange][published]") {
  const TemporaryDirectory place;
  const auto authority =
      ca::make_authority({.name = "test", .hosts = {}, .any_host = true, .now = wall_now()});
  REQUIRE(authority.has_value());
  write_text(place / "ca.crt", authority->certificate);
  write_text(place / "ca.key", authority->key);
  REQUIRE(::chmod((place / "ca.key").c_str(), 0600) == 0);
  const bool has_authority = GENERATE(true, false);
  const bool has_digest = GENERATE(true, false);
  const bool is_allowed = GENERATE(true, false);
  const bool is_there = GENERATE(true, false);
  CAPTURE(has_authority, has_digest, is_allowed, is_there);
  Published it([&](config::Config& config) {
    if (!is_allowed) config.filters.allow_clients = {"192.0.2.0/24"};
    if (has_authority) {
      config.intercept.ca_certificate = place / "ca.crt";
      config.intercept.ca_key = place / "ca.key";
      config.intercept.hosts = {"*"};
    }
    if (has_digest) config.filters.publish = {"changed", "resident"};
    config.filters.squid_digest = has_digest;
  });
  auto parameters = filter::FilterParameters{};
  parameters.layout = filter::Layout::kClassic;
  parameters.bits = 9'600;
  parameters.hashes = 7;
  parameters.capacity = 1000;
  const auto resident = publish::ResidentKeys::create(parameters);
  REQUIRE(resident);
  it.resources.emplace(
      publish::Resources::Sources{.changed = &it.changed, .resident = resident->get()});
  const auto ask = [&](const std::string& path) {
    return it.ask("http://encore.example" + path, "GET", "", is_there);
  };
  const int status = !is_allowed ? 403 : is_there ? 200 : 404;
  it.changed.note("http://h/a", kStart);
  const SyntheticResponse changed =
      ask("/filters/changed/" + publish::to_path(publish::Hour{490'000}));
  CHECK(changed.status == status);
  if (has_digest) {
    const SyntheticResponse digest = ask(std::string(kSquidDigestPath));
    CHECK(digest.status == status);
    if (status == 200) {
      CHECK(field(digest, "Content-Type") != field(changed, "Content-Type"));
      CHECK(digest.body == ask("/filters/resident.digest").body);
    }
  }
  if (has_authority) {
    const SyntheticResponse certificate = ask("/ca.crt");
    CHECK(certificate.status == 200);
    CHECK(certificate.body == authority->certificate);
    CHECK(field(certificate, "Content-Type") == "application/x-x509-ca-cert");
    CHECK(field(certificate, "Cache-Control") == "no-store");
  }
}

}  // namespace encore::server

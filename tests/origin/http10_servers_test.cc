#include "proxy/origin/http10_servers.h"

#include "tests/catch.h"

namespace encore::server {
namespace {

TEST_CASE("a server of HTTP/1.0 is remembered until it answers with a later version, or for long",
          "[origin][rfc9112][6.1]") {
  Http10Servers servers;
  const filter::Seed seed{1, 2};
  const Http10Servers::Server server{"a:80", seed};
  const MonotonicTime now{std::chrono::hours(1)};
  CHECK_FALSE(servers.is_old(server, now));
  servers.note(server, http::Version::kHttp11, now);
  CHECK_FALSE(servers.is_old(server, now));
  servers.note(server, http::Version::kHttp10, now);
  CHECK(servers.is_old(server, now + Http10Servers::kMemory - std::chrono::seconds(1)));
  CHECK_FALSE(servers.is_old(server, now + Http10Servers::kMemory));
  CHECK_FALSE(servers.is_old({"b:80", seed}, now));
  servers.note({"b:80", seed}, http::Version::kHttp11, now);
  CHECK(servers.is_old(server, now));
  servers.note(server, http::Version::kHttp11, now);
  CHECK_FALSE(servers.is_old(server, now));
}

}  // namespace
}  // namespace encore::server

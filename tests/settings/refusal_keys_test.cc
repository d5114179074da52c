#include "proxy/settings/refusal_keys.h"

#include <string>

#include "config/schema.h"
#include "tests/catch.h"

namespace encore::server {

TEST_CASE("a refusal by configuration names its key to clients of forward listeners alone",
          "[settings][refusal]") {
  CHECK(named_keys(config::Mode::kForward, "connect-port") ==
        " (by the proxy's configuration: forward.connect_ports)");
  CHECK(named_keys(config::Mode::kReverse, "connect-port").empty());
  CHECK(named_keys(config::Mode::kForward, "bad-method").empty());
  CHECK(named_keys(config::Mode::kReverse, "purge-not-allowed") ==
        " (by the proxy's configuration: listen.purge_clients, listen.purge_to_origin)");
}

TEST_CASE("the keys that refusals name are keys of the configuration", "[settings][refusal]") {
  for (const std::string_view detail : {"forward-proxy-needs-absolute-form",
                                        "client-not-allowed",
                                        "connect-port",
                                        "unsafe-port",
                                        "private-destination",
                                        "host-not-allowed",
                                        "path-not-allowed",
                                        "method-not-allowed",
                                        "port-not-allowed",
                                        "purge-not-allowed",
                                        "rate-limit",
                                        "transfers-per-client",
                                        "failed-logins",
                                        "unfinished-heads",
                                        "head-too-large",
                                        "target-too-long",
                                        "too-many-fields",
                                        "request-body-too-large",
                                        "request-too-slow",
                                        "dns-limit",
                                        "origin-busy",
                                        "origin-share"}) {
    std::string_view rest = keys_of_refusal(detail);
    CAPTURE(detail);
    REQUIRE_FALSE(rest.empty());
    while (!rest.empty()) {
      const std::string_view each = rest.substr(0, rest.find(", "));
      rest.remove_prefix(std::min(rest.size(), each.size() + 2));
      CAPTURE(each);
      const std::size_t dot = each.find('.');
      const config::Section* const section = config::find_section(each.substr(0, dot));
      REQUIRE(section != nullptr);
      CHECK(config::find_key(*section, each.substr(dot + 1)) != nullptr);
    }
  }
}

}  // namespace encore::server

// Addresses of the admin listener, files of disks, and values of keys, as operators rely on them.
#include <string>

#include "config/derive.h"
#include "config/dump.h"
#include "config/load.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

using namespace encore;
using namespace encore::config;

TEST_CASE("The admin listener has a socket in the state directory, unless it is configured",
          "[config][admin]") {
  const auto listeners = [](std::string_view toml) {
    const auto config = parse_config(toml, "encore.toml");
    REQUIRE(config.has_value());
    return admin_text(config->admin);
  };
  CHECK(listeners("") == "127.0.0.1:3129");
  CHECK(listeners("state.directory = \"/var/lib/encore\"") ==
        "127.0.0.1:3129, unix:/var/lib/encore/admin.sock");
  CHECK(listeners("state.directory = \"/var/lib/encore/\"") ==
        "127.0.0.1:3129, unix:/var/lib/encore/admin.sock");
  CHECK(listeners("state.directory = \"/s\"\nadmin.address = \"127.0.0.1:1\"") == "127.0.0.1:1");
  CHECK(listeners("state.directory = \"/s\"\nadmin.address = \"\"") == "none");
  // Another program could not find a relative one, and a longer name is none of a socket.
  CHECK(listeners("state.directory = \"state\"") == "127.0.0.1:3129");
  CHECK(listeners("state.directory = \"/" + std::string(100, 'a') + "\"") == "127.0.0.1:3129");
}

TEST_CASE("The admin listener may have several addresses, each its own", "[config][admin]") {
  const auto config =
      parse_config("admin.address = [\"*:3129\", \"unix:/run/a.sock\"]", "encore.toml");
  REQUIRE(config.has_value());
  const auto endpoints = admin_endpoints(config->admin);
  REQUIRE(endpoints.size() == 2);
  CHECK_FALSE(is_local(endpoints[0]));
  CHECK(is_local(endpoints[1]));
  const std::vector<std::string> by_set = {"admin.address=[::1]:3129,unix:/run/a.sock"};
  CHECK(admin_text(parse_config("", "", by_set)->admin) == "[::1]:3129, unix:/run/a.sock");
  CHECK(admin_warnings(config->admin).size() == 2);
  const std::vector<std::string> twice = {"admin.address=unix:/run/a.sock,unix:/run/./a.sock"};
  CHECK(parse_config("", "", twice).error().message ==
        "--set admin.address: \"unix:/run/./a.sock\" is used by admin.address; accepted: an "
        "address of its own");
}

TEST_CASE("A disk that is a directory is a file in it", "[config][disk]") {
  const server::TemporaryDirectory place;
  CHECK(disk_file_of(place.path()) == place / "disk");
  CHECK(disk_file_of(place / "new/") == place / "new/disk");
  CHECK(disk_file_of(place / "new") == place / "new");
  const auto config =
      load_config({.path = {}, .sets = {"disk.0.path=" + place.path(), "disk.0.size=100MiB"}});
  REQUIRE(config.has_value());
  CHECK(config->disk[0].path == place / "disk");
}

TEST_CASE("A fleet is reported by node, engine and stream, never by its password",
          "[config][fleet]") {
  const auto report = [](const std::string& text) {
    const auto config = parse_config(text, "encore.toml");
    REQUIRE(config.has_value());
    return check_report(*config, 1);
  };
  const std::string by_url =
      report("[fleet]\npurges = \"redis://:hidden@a:1?stream=x\"\nnode = \"n1\"");
  CHECK(by_url.contains("fleet                 node n1, purges by redis://a:1/0, stream x\n"));
  CHECK_FALSE(by_url.contains("hidden"));
  const std::string by_both =
      report("[fleet]\npurges = \"redis://:hidden@a\"\npassword_file = \"/f\"");
  CHECK(by_both.contains("node by the host name, purges by redis://a:6379/0"));
  CHECK(by_both.contains("note: the password in fleet.purges has no effect"));
  CHECK(report("fleet.node = \"n1\"").contains("note: fleet.node has no effect"));
  CHECK_FALSE(report("").contains("fleet"));
}

TEST_CASE("Values are shown by the path of a key or a section", "[config][show]") {
  const auto config = parse_config(
      "cache.memory = \"64MiB\"\nadmission.seed = \"abc\"\n[[listen]]\naddress = \"*:80\"\n"
      "[log]\naccess = \"a\\\"b\"",
      "encore.toml");
  REQUIRE(config.has_value());
  const auto one = [&](std::string_view path) {
    const auto shown = show_config(*config, path);
    REQUIRE(shown.has_value());
    REQUIRE(shown->size() == 1);
    return shown->front();
  };
  CHECK(one("cache.memory").text == "64MiB");
  CHECK(one("cache.memory").toml == "\"64MiB\"");
  CHECK(one("log.access").text == "a\"b");
  CHECK(one("listen.0.address").text == "*:80");
  CHECK(one("forward.connect_ports").text == "[80, 443, 8443]");
  CHECK(one("admission.seed").is_secret);
  CHECK(one("admission.seed").text.empty());
  CHECK(show_config(*config, "listen.0")->size() > 5);
  CHECK(show_config(*config, "listen").value().size() == show_config(*config, "listen.0")->size());
  CHECK(show_config(*config, "disk")->empty());
  CHECK(show_config(*config, "")->size() > 100);
  CHECK(show_config(*config, "cache.memry").error().message ==
        "unknown key \"cache.memry\", did you mean \"cache.memory\"?");
  CHECK_FALSE(show_config(*config, "cach").has_value());
}

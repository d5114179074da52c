#include "config/bare_values.h"

#include <string>
#include <vector>

#include "config/load.h"
#include "tests/catch.h"
#include "tests/config/loaded.h"

namespace encore::config {
namespace {

TEST_CASE("a value that is right in quotes is named with its key and the form to write",
          "[config]") {
  struct Row {
    std::string_view toml;
    std::string_view fault;
  };
  const Row row = GENERATE(values<Row>({
      {"[cache]\nmemory = 1GiB\n",
       "2:10: cache.memory: 1GiB needs quotes; write: memory = \"1GiB\""},
      {"[cache]\nmemory=64 MiB # room\n",
       "2:8: cache.memory: 64 MiB needs quotes; write: memory = \"64 MiB\""},
      {"cache.memory = 1GiB\n", "1:16: cache.memory: 1GiB needs quotes; write: memory = \"1GiB\""},
      {"[timeouts]\norigin_connect = 10s\n",
       "2:18: timeouts.origin_connect: 10s needs quotes; write: origin_connect = \"10s\""},
      {"[timeouts]\norigin_connect = 250ms\n",
       "2:18: timeouts.origin_connect: 250ms needs quotes; write: origin_connect = \"250ms\""},
      {"[[listen]]\n[[listen]]\naddress = 127.0.0.1:8080\n",
       "3:11: listen.1.address: 127.0.0.1:8080 needs quotes; write: address = \"127.0.0.1:8080\""},
      {"[[listen]]\naddress = [::1]:8080\n",
       "2:11: listen.0.address: [::1]:8080 needs quotes; write: address = \"[::1]:8080\""},
      {"[[listen]]\nmode = reverse\n",
       "2:8: listen.0.mode: reverse needs quotes; write: mode = \"reverse\""},
      {"[cache]\neviction = lru\n",
       "2:12: cache.eviction: lru needs quotes; write: eviction = \"lru\""},
      {"[log]\naccess = /var/log/encore.log\n",
       "2:10: log.access: /var/log/encore.log needs quotes; write: access = "
       "\"/var/log/encore.log\""},
      {"[log]\naccess = -\n", "2:10: log.access: - needs quotes; write: access = \"-\""},
      {"[[origin]]\nservers = [http://a:80, \"http://b:80\", http://c]\n",
       "2:11: origin.0.servers: [http://a:80, \"http://b:80\", http://c] needs quotes; write: "
       "servers = [\"http://a:80\", \"http://b:80\", \"http://c\"]"},
      {"[[origin]]\nservers = http://a:80\n",
       "2:11: origin.0.servers: http://a:80 needs quotes; write: servers = [\"http://a:80\"]"},
      {"[[origin]]\nservers = http://a:80, http://b:80\n",
       "2:11: origin.0.servers: http://a:80, http://b:80 needs quotes; write: servers = "
       "[\"http://a:80\", \"http://b:80\"]"},
      {"[forward]\nallow_clients = [10.0.0.0/8, # ours\n  192.168.0.0/16\n]\n",
       "2:17: forward.allow_clients: a text in the list needs quotes; write: allow_clients = "
       "[\"10.0.0.0/8\", \"192.168.0.0/16\"]"},
      {"[admission]\nrefresh = yes\n",
       "2:11: admission.refresh: yes is not a boolean; write: refresh = true"},
      {"[admission]\nrefresh = Off\n",
       "2:11: admission.refresh: Off is not a boolean; write: refresh = false"},
      {"[[rule]]\nnegative = { 404 = 10s }\n",
       "2:12: rule.0.negative: { 404 = 10s } needs quotes; write: negative = { 404 = \"10s\" }"},
  }));
  CAPTURE(row.toml);
  const std::string text = faults(row.toml);
  CHECK(text.substr(0, text.find('\n')) == "encore.toml:" + std::string(row.fault));
}

TEST_CASE("what quotes alone do not make right is named with its key, too", "[config]") {
  CHECK(faults("[cache]\nmemory = 1G\n").starts_with("encore.toml:2:10: cache.memory: "));
  CHECK(faults("[admission]\nrefresh = perhaps\n") ==
        "encore.toml:2:11: admission.refresh: \"perhaps\"; accepted: true or false");
  CHECK(faults("[cache]\nshards = 10k\n").starts_with("encore.toml:2:10: cache.shards: \"10k\" "));
  CHECK(faults("[cache]\nnonsense = 10k\n").find("needs quotes") == std::string::npos);
}

TEST_CASE("all values without quotes are named at once, and the other faults with them",
          "[config]") {
  const std::string text = faults(
      "[cache]\nmemory = 1GiB\nmax_object = 4MiB\n[timeouts]\norigin_connect = 1s\ndns = 5\n");
  for (const std::string_view part :
       {"2:10: cache.memory: 1GiB", "3:14: cache.max_object: 4MiB",
        "5:18: timeouts.origin_connect: 1s", "timeouts.dns: 5 has no unit"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("a number where a text belongs is named with the form to write", "[config]") {
  CHECK(faults("[[rule]]\nname = 5\n").find("write: name = \"5\"") != std::string::npos);
}

TEST_CASE("a secret is not shown for want of quotes", "[config]") {
  const std::string text = faults("[admission]\nseed = hush hush\n");
  CHECK(text.find("admission.seed") != std::string::npos);
  CHECK(text.find("hush") == std::string::npos);
}

TEST_CASE("a switch and a list of --set are named with the form to write", "[config]") {
  CHECK(faults("", {"admission.refresh=yes"}).find("write: 'refresh=true'") != std::string::npos);
  CHECK(faults("", {"forward.allow_clients=[10.0.0.0/8, ::1]"})
            .find("write: 'allow_clients=[\"10.0.0.0/8\", \"::1\"]'") != std::string::npos);
}

}  // namespace
}  // namespace encore::config

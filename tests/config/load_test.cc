#include "config/load.h"

#include <cstdio>
#include <string>
#include <vector>

#include "config/derive.h"
#include "tests/catch.h"
#include "tests/config/loaded.h"

using namespace encore;
using namespace encore::config;

namespace {

Config good_config(std::string_view toml, std::vector<std::string> sets = {}) {
  const auto config = parse_config(toml, "encore.toml", sets);
  INFO((config ? std::string() : config.error().message));
  REQUIRE(config.has_value());
  return *config;
}

}  // namespace

TEST_CASE("Without file and sets a config is the defaults", "[config]") {
  const auto config = load_config({});
  REQUIRE(config.has_value());
  CHECK(*config == Config{});
}

TEST_CASE("The names that the outside uses are read", "[config]") {
  const Config config = good_config(R"(
[[listen]]
address = "127.0.0.1:8080"
mode = "reverse"
[[listen]]
[[origin]]
host = "Example.com"
path = "/img"
servers = ["http://127.0.0.1:8000", "https://[::1]"]
[forward]
allow_clients = ["10.0.0.0/8"]
connect_ports = [443, 8443]
private_destinations = "never"
[cache]
memory = "1GiB"
shards = 4
eviction = "lru"
max_object = 4096
[admission]
policy = "exact-second-hit"
capacity = 2000
fpr = 0.05
layout = "blocked"
hash = "siphash"
seed = "abc"
rotate_after = "1h"
refresh = false
[state]
directory = "/var/lib/encore"
[workers]
count = 3
[admin]
address = ""
[log]
access = "-"
format = "squid"
decisions = "d.journal"
level = "warn"
)");
  REQUIRE(config.listen.size() == 2);
  CHECK(config.listen[0] == Listen{"127.0.0.1:8080", Mode::kReverse});
  CHECK(config.listen[1] == Listen{});
  REQUIRE(config.origin.size() == 1);
  CHECK(config.origin[0].host == "example.com");
  CHECK(config.origin[0].path == "/img");
  CHECK(config.origin[0].servers ==
        std::vector<ServerText>{"http://127.0.0.1:8000", "https://[::1]"});
  CHECK(config.forward.allow_clients == std::vector<CidrText>{"10.0.0.0/8"});
  CHECK(config.forward.connect_ports == std::vector<std::uint64_t>{443, 8443});
  CHECK(config.forward.private_destinations == PrivateDestinations::kNever);
  CHECK(config.cache.memory_bytes == kGiB);
  CHECK(config.cache.shards == 4);
  CHECK(config.cache.eviction == Eviction::kLru);
  CHECK(config.cache.max_object_bytes == 4096);
  CHECK(config.admission.policy == Policy::kExactSecondHit);
  CHECK(config.admission.capacity == 2000);
  CHECK(config.admission.fpr == 0.05);
  CHECK(config.admission.layout == filter::Layout::kBlocked);
  CHECK(config.admission.hash == filter::HashFamily::kSiphash);
  CHECK(config.admission.seed == "abc");
  CHECK(config.admission.rotate_after == std::chrono::hours(1));
  CHECK_FALSE(config.admission.refresh);
  CHECK(config.state.directory == "/var/lib/encore");
  CHECK(config.workers.count == 3);
  CHECK(admin_endpoints(config.admin).empty());
  CHECK(config.log.access == "-");
  CHECK(config.log.format->style == LogFormat::Style::kSquid);
  CHECK(config.log.decisions == "d.journal");
  CHECK(config.log.level == LogLevel::kWarn);
}

TEST_CASE("Every fault is reported with its place, what is wrong and what is accepted",
          "[config]") {
  CHECK(
      faults("[cache]\nmemroy = \"1GiB\"\nshards = 3\n[admision]\nfpr = 1\n") ==
      "encore.toml:4:2: admision: unknown section, did you mean \"admission\"?; accepted: "
      "listen, acme, origin, rule, forward, intercept, cache, compression, disk, admission, state, "
      "upgrade, "
      "workers, admin, filters, shadow, log, "
      "timeouts, "
      "limits, "
      "limit, upstream, fleet, http\n"
      "encore.toml:2:1: cache.memroy: unknown key, did you mean \"memory\"?; accepted: memory, "
      "shards, eviction, max_object, collapse, collapse_buffer, uncacheable_memory, "
      "background_finish, range_fetch_max, variants_max, query_sort, query_drop, "
      "normalise_accept_encoding, heuristic_fraction, heuristic_max, "
      "heuristic_with_cookie, keep_stale, "
      "serve_stale_on_error, stale_while_revalidate, stale_if_error, targets, "
      "ignore_client_reload, set_cookie, cache_status_key, cache_status_admission, tag_fields, "
      "strip_tags, purge_at_start, mean_object, disk_write_rate, disk_reinsert, disk_life_min\n"
      "encore.toml:3:10: cache.shards: 3 is not a power of two; accepted: a power of two, 1 .. "
      "256");
}

TEST_CASE("A key that stands in another section is found there", "[config]") {
  const std::string text = faults("[http]\nmemory = 1\n");
  CHECK_THAT(text, Catch::Matchers::Contains("did you mean \"cache.memory\"?"));
}

TEST_CASE("A syntax error says where and nothing else", "[config]") {
  const std::string text = faults("[cache]\nmemory = = 1\n[[listen]]\nmode = \"reverse\"\n");
  CHECK(text.starts_with("encore.toml:2:10: "));
  CHECK(text.find('\n') == std::string::npos);
}

TEST_CASE("A table without a name is a syntax error", "[config]") {
  CHECK(faults("[[[a").starts_with("encore.toml:1:3: "));
  // As deep as it is long: the parser would need more stack than there is.
  for (const char* part : {"a.", "\"a\" . ", "'a'."}) {
    std::string key = "[cache]\n";
    for (int i = 0; i < 200'000; ++i) key += part;
    CHECK(faults(key + "a = 1").starts_with("encore.toml:2:"));
    CHECK(faults("[" + key.substr(8) + "a]").starts_with("encore.toml:1:"));
  }
  CHECK(faults("# " + std::string(900, '.') + "\n").empty());
  CHECK(faults("[=").starts_with("encore.toml:1:2: "));
}

TEST_CASE("A letter beyond ASCII outside quotes is a syntax error", "[config]") {
  CHECK(faults("[cache]\n\u0299emory = 1\n").starts_with("encore.toml:2:1: "));
  CHECK(faults("[\u0299cache]\n").starts_with("encore.toml:1:2: "));
}

TEST_CASE("Bad values are refused", "[config]") {
  struct Row {
    const char* toml;
    const char* message;
  };
  const Row row = GENERATE(
      Row{"[cache]\nmemory = \"12\u00b5\"",
          "2:10: cache.memory: \"12\u00b5\" is of an unknown unit; accepted: a number with B, KiB, "
          "MiB, GiB, TiB, kB, MB, GB or TB"},
      Row{"[cache]\nmemory = 1.5", "2:10: cache.memory: 1.5 has no unit; accepted: 64KiB .. 64TiB"},
      Row{"[cache]\nmemory = 65535",
          "2:10: cache.memory: 65535 is too small; accepted: 64KiB .. 64TiB"},
      Row{"[cache]\ncollapse = 1",
          "2:12: cache.collapse: 1 is not a boolean; accepted: true or "
          "false"},
      Row{"[cache]\neviction = \"SIEVE\"",
          "2:12: cache.eviction: \"SIEVE\" is unknown; accepted: sieve, lru, fifo, s3-fifo, slru, "
          "2q, arc, lfu, gdsf, w-tinylfu or lhd"},
      Row{"[cache]\nheuristic_fraction = 1.01",
          "2:22: cache.heuristic_fraction: 1.01 is too large; accepted: 0 .. 1.0"},
      Row{"[cache]\nheuristic_fraction = nan",
          "2:22: cache.heuristic_fraction: nan is not a number; accepted: 0 .. 1.0"},
      Row{"[cache]\nvariants_max = 1.5",
          "2:16: cache.variants_max: 1.5 is not a whole number; accepted: 1 .. 256"},
      Row{"[cache]\neviction = \"belady\"",
          "2:12: cache.eviction: \"belady\" is unknown; accepted: sieve, lru, fifo, s3-fifo, slru, "
          "2q, arc, lfu, gdsf, w-tinylfu or lhd"},
      Row{"[admission]\npolicy = \"third-hit\"",
          "2:10: admission.policy: \"third-hit\" is unknown; accepted: second-hit, always, never, "
          "exact-second-hit, nth-hit, probability, size-threshold, tinylfu, adaptsize or "
          "probation"},
      Row{"[admission]\nwrite_cost = 100.5",
          "2:14: admission.write_cost: 100.5 is too large; accepted: 0 .. 100.0"},
      Row{"[admission]\nfill = 1",
          "2:8: admission.fill: 1 is not a boolean; accepted: true or false"},
      Row{"[admission]\npolicy = \"probation\"",
          "2:10: admission.policy: \"probation\" without a [[disk]]; accepted: with one, or "
          "\"second-hit\""},
      Row{"[admission]\npolicy = \"probation\"\nhash = \"siphash\"\n[[disk]]\npath = \"d\"\nsize = "
          "\"1GiB\"",
          "3:8: admission.hash: \"siphash\" with \"probation\", which hashes keys by xxh3 only; "
          "accepted: \"xxh3\""},
      Row{"[admission]\npolicy = \"probation\"\nrefresh = false\n[[disk]]\npath = \"d\"\nsize = "
          "\"1GiB\"",
          "3:11: admission.refresh: false with \"probation\"; accepted: true"},
      Row{"[admission]\nmin_requests = 1",
          "2:16: admission.min_requests: 1 is too small; accepted: 2 .. 16"},
      Row{"[admission]\nmin_requests = 17",
          "2:16: admission.min_requests: 17 is too large; accepted: 2 .. 16"},
      Row{"[admission]\nprobability = 0",
          "2:15: admission.probability: 0 is too small; accepted: 1e-09 .. 1.0"},
      Row{"[admission]\nprobability = 1.01",
          "2:15: admission.probability: 1.01 is too large; accepted: 1e-09 .. 1.0"},
      Row{"[admission]\nsize_threshold = 0",
          "2:18: admission.size_threshold: 0 is too small; accepted: 1B .. 64TiB"},
      Row{"[timeouts]\ndns = 5", "2:7: timeouts.dns: 5 has no unit; accepted: 1ms .. 30d, or 0s"},
      Row{"[timeouts]\ndns = \"1us\"",
          "2:7: timeouts.dns: \"1us\" is too small; accepted: 1ms .. 30d, or 0s"},
      Row{"[forward]\nconnect_ports = [0]",
          "2:17: forward.connect_ports: 0 is too small; accepted: a list of numbers, 1 .. 65535"},
      Row{"[forward]\nconnect_ports = [443, \"a\"]",
          "2:17: forward.connect_ports: a value of another kind; accepted: a list of numbers, 1 .. "
          "65535"},
      Row{"[forward]\nallow_clients = \"::1\"",
          "2:17: forward.allow_clients: \"::1\" is not a list of strings; accepted: a list of up "
          "to 4096: addresses and blocks, as \"10.0.0.0/8\""},
      Row{"[forward]\nallow_clients = [\"10.0.0.1/8\"]",
          "2:17: forward.allow_clients: \"10.0.0.1/8\" has bits set after its prefix "
          "(10.0.0.0/8?); accepted: a list of up to 4096: addresses and blocks, as "
          "\"10.0.0.0/8\""},
      Row{"[[origin]]\nservers = []",
          "2:11: origin.0.servers: a list is too short; accepted: a list of 1 .. 256: "
          "\"http://host:port\", \"https://host:port\" or \"unix:/run/app.sock\"; behind it "
          "weight=N, backup or both"},
      Row{"[log]\naccess = 2020-01-01",
          "2:10: log.access: a value of another kind; accepted: a file name, \"-\" or \"\""},
      Row{"[http]\nvia = \"a b\"",
          "2:7: http.via: \"a b\" is not a pseudonym; accepted: letters, digits and -._"},
      Row{"cache = 1", "1:9: cache: not a table; accepted: [cache]"},
      Row{"[listen]\naddress = \"*:1\"", "1:1: listen: not a list of tables; accepted: [[listen]]"},
      Row{"listen = []", "1:10: listen: no listener; accepted: at least one [[listen]]"});

  CHECK(faults(row.toml) == std::string("encore.toml:") + row.message);
}

TEST_CASE("A secret is never shown in a message", "[config]") {
  const std::string text = faults("[admission]\nseed = \"0123456789abcdefg\"\n");
  CHECK(text ==
        "encore.toml:2:8: admission.seed: the value is not a seed; accepted: 1 to 32 hex "
        "digits or \"\"");
  CHECK(faults("", {"admission.seed=topsecret"}).find("topsecret") == std::string::npos);
}

TEST_CASE("--set comes after the file, in order, through the same schema", "[config][set]") {
  const Config config = good_config(
      "[cache]\nmemory = \"1GiB\"\n",
      {"cache.memory=2GiB", "cache.memory=3GiB", "cache.shards=8", "admission.fpr=0.1",
       "admission.refresh=false", "admission.capacity=1e6",
       "log.access=", "forward.connect_ports=443, 8443", "forward.allow_clients=10.0.0.0/8,::1",
       "cache.query_drop=[\"a,b\"]", "cache.tag_fields=", "http.via='own'", "timeouts.dns=0",
       "limits.request_body=4096", "log.level=debug"});
  CHECK(config.cache.memory_bytes == 3 * kGiB);
  CHECK(config.cache.shards == 8);
  CHECK(config.admission.fpr == 0.1);
  CHECK_FALSE(config.admission.refresh);
  CHECK(config.admission.capacity == 1'000'000);
  CHECK(config.forward.connect_ports == std::vector<std::uint64_t>{443, 8443});
  CHECK(config.forward.allow_clients == std::vector<CidrText>{"10.0.0.0/8", "::1"});
  CHECK(config.cache.query_drop == std::vector<std::string>{"a,b"});
  CHECK(config.cache.tag_fields.empty());
  CHECK(config.http.via == "own");
  CHECK(config.timeouts.dns == Nanoseconds(0));
  CHECK(config.limits.request_body_bytes == 4096);
  CHECK(config.log.level == LogLevel::kDebug);
}

TEST_CASE("--set reaches into the lists of listeners and origins", "[config][set]") {
  const Config config = good_config(
      "", {"listen.0.address=127.0.0.1:1", "listen.1.address=127.0.0.1:2", "listen.1.mode=reverse",
           "origin.0.servers=http://a,http://b", "origin.1.path=/img"});
  REQUIRE(config.listen.size() == 2);
  CHECK(config.listen[0] == Listen{"127.0.0.1:1", Mode::kForward});
  CHECK(config.listen[1] == Listen{"127.0.0.1:2", Mode::kReverse});
  REQUIRE(config.origin.size() == 2);
  CHECK(config.origin[0].servers == std::vector<ServerText>{"http://a", "http://b"});
  CHECK(config.origin[1].path == "/img");
}

TEST_CASE("A bad --set is refused by its own name", "[config][set]") {
  struct Row {
    const char* set;
    const char* message;
  };
  const Row row =
      GENERATE(Row{"cache.memory",
                   "--set cache.memory: not section.key=value; accepted: as in --set "
                   "cache.memory=1GiB"},
               Row{"memory=1",
                   "--set memory: not section.key=value; accepted: as in --set "
                   "cache.memory=1GiB"},
               Row{"workers.count=many",
                   "--set workers.count: \"many\" is not a whole number; accepted: 1 .. 256, "
                   "or 0"},
               Row{"workers.count=1\nx = 2",
                   "--set workers.count: \"1\\u000ax = 2\" is not a whole number; accepted: "
                   "1 .. 256, or 0"},
               Row{"workers.0.count=1",
                   "--set workers.0.count: [workers] is not a list; accepted: "
                   "workers.KEY"},
               Row{"listen.address=*:1",
                   "--set listen.address: [[listen]] is a list of 1; accepted: listen.0.KEY "
                   ".. listen.1.KEY"},
               Row{"listen.2.address=*:1",
                   "--set listen.2.address: [[listen]] is a list of 1; accepted: "
                   "listen.0.KEY .. listen.1.KEY"},
               Row{"http.via=\xff",
                   "--set http.via: not valid UTF-8; accepted: letters, digits "
                   "and -._"},
               Row{"http.vai=x",
                   "--set http.vai: unknown key, did you mean \"via\"?; accepted: "
                   "via, error_pages"});
  CHECK(faults("", {row.set}) == row.message);
}

TEST_CASE("Addresses are not taken twice", "[config]") {
  CHECK(faults("", {"admin.address=127.0.0.1:3128"}) ==
        "--set admin.address: \"127.0.0.1:3128\" is used by listen.0.address; "
        "accepted: an address of its own");
  CHECK(faults("[[listen]]\naddress = \"[::]:80\"\n[[listen]]\naddress = \"*:80\"\n") ==
        "encore.toml:4:11: listen.1.address: \"*:80\" is used by listen.0.address; accepted: an "
        "address of its own");
  CHECK(faults("", {"listen.0.address=127.0.0.1:0", "admin.address=127.0.0.1:0"}).empty());
}

TEST_CASE("Addresses that contain each other are not taken both", "[config]") {
  struct Row {
    std::string_view first;
    std::string_view second;
    bool taken;
  };
  const auto row = GENERATE(
      Row{"0.0.0.0:80", "127.0.0.1:80", true}, Row{"127.0.0.1:80", "0.0.0.0:80", true},
      Row{"[::]:80", "0.0.0.0:80", true}, Row{"*:80", "127.0.0.1:80", true},
      Row{"[::1]:80", "*:80", true}, Row{"[::ffff:127.0.0.1]:80", "127.0.0.1:80", true},
      Row{"unix:/run/a.sock", "unix:/run/./a.sock", true}, Row{"0.0.0.0:80", "[::1]:80", false},
      Row{"0.0.0.0:80", "127.0.0.1:81", false}, Row{"127.0.0.1:80", "127.0.0.2:80", false},
      Row{"127.0.0.1:80", "[::1]:80", false}, Row{"*:0", "127.0.0.1:0", false},
      Row{"unix:/run/a.sock", "unix:/run/b.sock", false});
  CAPTURE(row.first, row.second);
  const std::string first(row.first);
  const std::string second(row.second);
  CHECK(faults("", {"listen.0.address=" + first, "listen.1.address=" + second}).empty() !=
        row.taken);
  CHECK(faults("", {"listen.0.address=" + first, "admin.address=" + second}).empty() != row.taken);
}

TEST_CASE("A reverse listener needs an origin, and each route is there once", "[config]") {
  CHECK(
      faults("", {"listen.0.mode=reverse"}) ==
      "--set listen.0.mode: \"reverse\" without an origin; accepted: with at least one [[origin]]");
  CHECK(faults("[[origin]]\n[[origin]]\nhost = \"*\"\n") ==
        "encore.toml:3:8: origin.1.host: \"*\" with path \"/\" is origin.0 already; accepted: each "
        "pair once");
}

TEST_CASE("Keys that contradict each other are refused", "[config]") {
  CHECK(faults("[limits]\nuri = \"128KiB\"\n") ==
        "encore.toml:2:7: limits.uri: limits.uri is 128KiB, limits.head 64KiB; accepted: a URI no "
        "longer than the head it stands in");
  CHECK(faults("[upstream]\ndns_ttl_min = \"2h\"\n") ==
        "encore.toml:2:15: upstream.dns_ttl_min: upstream.dns_ttl_min is 2h, upstream.dns_ttl_max "
        "1h; accepted: a lower bound no higher than the upper one");
  CHECK(faults("[log]\naccess = \"a\"\ndecisions = \"a\"\n") ==
        "encore.toml:3:13: log.decisions: \"a\"; accepted: a file of its own");
}

TEST_CASE("A file that is not there is an error with its name", "[config]") {
  const auto config = load_config({.path = "/nonexistent/encore.toml", .sets = {}});
  REQUIRE_FALSE(config.has_value());
  CHECK(config.error().message ==
        "/nonexistent/encore.toml: cannot open: No such file or directory");
  const auto directory = load_config({.path = "/", .sets = {}});
  REQUIRE_FALSE(directory.has_value());
  CHECK(directory.error().message == "/: cannot read: Is a directory");
}

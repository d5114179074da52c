#include "tests/simulate/settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "config/load.h"

namespace encore::simulate {
namespace {

std::string one_of(Random& random, std::initializer_list<const char*> of) {
  return std::string(random.pick(of)) + "\n";
}

constexpr std::string_view kObjectMax = "max_object = ";

std::string object_max(Random& random) {
  return one_of(random, {"\"32MiB\"", "\"32MiB\"", "\"2KiB\"", "\"40KiB\""});
}

// Some that are for nothing, and some that are for a part of all URLs: they change the set of
// stored objects, and nothing of what may be answered.
std::string some_rules(Random& random) {
  std::string out;
  for (int left = random.pick({0, 0, 1, 2, 3}); left != 0; --left) {
    out +=
        "[[rule]]\nadmission = " + one_of(random, {"\"always\"", "\"never\"", "\"probability\""});
    out += "collapse = " + one_of(random, {"true", "false"});
    out += "path = " + one_of(random, {"\"*1*\"", "\"*3\"", "[\"*2*\", \"/none/*\"]", "\"*\""});
    out += "host = " + one_of(random, {"\"*.elsewhere.test\"", "\"*\"", "\"*\""});
    out += "clients = " + one_of(random, {"\"0.0.0.0/0\"", "\"127.0.0.1\"", "[]"});
  }
  return out;
}

// Settings that stay as first drawn.
struct Fixed {
  std::uint32_t shards = 1;
  bool disk = false;
  bool rules = false;
  bool http2 = false;  // origins speak it
  bool strip_tags = false;
};

// Probation is for what has a disk.
std::string some_policy(bool has_disk, Random& random) {
  if (has_disk && random.percent(50)) return "\"probation\"\n";
  return one_of(random, {"\"second-hit\"", "\"second-hit\"", "\"always\"", "\"probability\""});
}

// Returns the settings that a reload may change.
std::string changeable(const Fixed& fixed, Random& random) {
  std::string out = "[cache]\nshards = " + std::to_string(fixed.shards) + "\n";
  // Before a disk little, so that much is on that alone.
  out += "memory = " + (fixed.disk
                            ? one_of(random, {"\"256KiB\"", "\"256KiB\"", "\"2MiB\""})
                            : one_of(random, {"\"256KiB\"", "\"2MiB\"", "\"2MiB\"", "\"16MiB\""}));
  out += std::string(kObjectMax) + object_max(random);
  out += "collapse = " + one_of(random, {"true", "true", "true", "false"});
  out += "collapse_buffer = " + one_of(random, {"\"1KiB\"", "\"16KiB\"", "\"1MiB\""});
  out += "uncacheable_memory = " + one_of(random, {"\"0s\"", "\"1s\"", "\"2m\""});
  out += "range_fetch_max = " + one_of(random, {"\"1KiB\"", "\"32MiB\""});
  out += "background_finish = " + one_of(random, {"\"0B\"", "\"32MiB\""});
  out += "variants_max = " + one_of(random, {"2", "32"});
  out += "eviction = " + one_of(random, {"\"sieve\"", "\"lru\"", "\"s3-fifo\"", "\"w-tinylfu\""});
  out += "disk_life_min = \"0s\"\n";
  out += "stale_while_revalidate = " + one_of(random, {"\"0s\"", "\"0s\"", "\"1s\"", "\"60s\""});
  out += "stale_if_error = " + one_of(random, {"\"0s\"", "\"0s\"", "\"1s\"", "\"60s\""});
  out += "heuristic_with_cookie = " + one_of(random, {"false", "false", "false", "true"});
  out += "serve_stale_on_error = " + one_of(random, {"true", "true", "false"});
  if (fixed.strip_tags) out += "strip_tags = true\n";
  out += "[admission]\npolicy = " + some_policy(fixed.disk, random);
  out += "write_cost = " + one_of(random, {"0.0", "0.3", "3.0"});
  out += "fill = " + one_of(random, {"true", "false"});
  // A pair of filters that rotates within a round, and is made in no time.
  out += "capacity = " + one_of(random, {"200", "600"});
  out += "layout = " + one_of(random, {"\"split\"", "\"classic\"", "\"partitioned\""});
  out += "[limits]\ntransfer_buffer = " + one_of(random, {"\"16KiB\"", "\"256KiB\""});
  out += "transfer_memory = " + one_of(random, {"\"1MiB\"", "\"4MiB\"", "\"64MiB\""});
  out += "[upstream]\nset_aside = " + one_of(random, {"\"0s\"", "\"100ms\""});
  out += "eject_after = " + one_of(random, {"1", "1", "3"});
  out += "buffer_requests = " + one_of(random, {"\"0B\"", "\"0B\"", "\"1KiB\"", "\"64KiB\""});
  out += "[timeouts]\norigin_connect = \"1s\"\npool_idle = " +
         one_of(random, {"\"2s\"", "\"100ms\"", "\"30s\""});
  out += "tunnel_idle = " + one_of(random, {"\"10m\"", "\"10m\"", "\"400ms\""});
  if (fixed.http2) {
    const std::string streams = one_of(random, {"1", "2", "10", "100"});
    out.insert(out.find("set_aside"), "http2_streams = " + streams);
  }
  return fixed.rules ? out : out + some_rules(random);
}

// The servers after the first: none, the same under another name, and one at which nobody is. A '%'
// is their scheme.
std::string others(Random& random) {
  return random.pick({"", "", ", \"%127.0.0.1:8009\"",
                      ", \"%localhost:8000 weight=3\", \"%127.0.0.1:8009\"",
                      ", \"%127.0.0.1:8009\", \"%localhost:8000 backup\""});
}

std::string origin_section(const Settings& settings, Random& random) {
  const std::string named = one_of(random, {"plain.test", "many.test", "slow.test"});
  const std::string host =
      settings.names ? named.substr(0, named.size() - 1) : std::string("127.0.0.1");
  std::string servers = "\"%" + host + ":8000\"" + others(random);
  const bool plain = settings.origin_authority.empty();
  for (std::size_t at = 0; (at = servers.find('%')) != std::string::npos;) {
    servers.replace(at, 1, plain ? "http://" : "https://");
  }
  std::string out = "[[origin]]\nservers = [" + servers + "]\n";
  out += "balance = " +
         one_of(random, {"\"round-robin\"", "\"least-requests\"", "\"hash\"", "\"client\""});
  if (settings.origin_http2) out += "http2 = true\n";
  if (!plain) out += "tls_ca_file = \"" + settings.origin_authority + "\"\n";
  return out;
}

constexpr const char* kMark = "# what a reload may change\n";
constexpr const char* kRulesMark = "# rules\n";

std::string rules_part(const Settings& settings) {
  if (settings.rules == nullptr) return {};
  const std::string address = "127.0.0.1:" + std::to_string(settings.port);
  return kRulesMark + settings.rules->text({address});
}

}  // namespace

std::string draw_configuration(const Settings& settings, Random& random) {
  const bool reverse = settings.direction == Direction::kReverse;
  std::string out = "[[listen]]\naddress = \"127.0.0.1:" + std::to_string(settings.port) + "\"\n";
  out += reverse ? "mode = \"reverse\"\n" : "mode = \"forward\"\n";
  out += settings.listen_tls;
  if (reverse) out += origin_section(settings, random);
  out +=
      "[admin]\naddress = \"\"\nallow_hosts = [\"proxy.test\"]\n[log]\naccess = \"\"\nlevel = "
      "\"off\"\n";
  if (!settings.log_format.empty()) {
    out += "format = '" + std::string(settings.log_format) + "'\n";
  }
  out += "[workers]\ncount = " + one_of(random, {"1", "2", "2", "3"});
  out += "[forward]\nconnect_ports = [" + std::to_string(kTunnelPort) + "]\n";
  if (settings.publishes) {
    out += "[filters]\npublish = [\"changed\", \"resident\"]\npath = \"/filters\"\n";
    out += "hash = \"sha1-fields20\"\nkeep = \"3h\"\nsquid_digest = true\ncapacity = " +
           one_of(random, {"20", "300", "1000"});
    out += "resident_capacity = " + one_of(random, {"20", "1000", "1000"});
  }
  if (settings.disk) {
    out += "[[disk]]\npath = \"disk\"\nsize = " +
           one_of(random, {"\"768KiB\"", "\"768KiB\"", "\"768KiB\"", "\"1MiB\"", "\"4MiB\""});
    out += "segment = " + one_of(random, {"\"64KiB\"", "\"64KiB\"", "\"128KiB\""});
  }
  const Fixed fixed{.shards = random.pick({1U, 4U, 16U}),
                    .disk = settings.disk,
                    .rules = settings.rules != nullptr,
                    .http2 = settings.origin_http2,
                    .strip_tags = settings.strip_tags};
  return out + kMark + changeable(fixed, random) + rules_part(settings);
}

std::string redraw_configuration(const std::string& text, Random& random) {
  const std::size_t rules = std::min(text.find(kRulesMark), text.size());
  const config::Config config = read_configuration(text);
  const Fixed fixed{
      .shards = config.cache.shards,
      .disk = !config.disk.empty(),
      .rules = rules != text.size(),
      .http2 = std::ranges::any_of(config.origin, [](const auto& each) { return each.http2; }),
      .strip_tags = config.cache.strip_tags};
  return text.substr(0, text.find(kMark)) + kMark + changeable(fixed, random) + text.substr(rules);
}

std::string with_rules(const std::string& text, const Settings& settings) {
  return text.substr(0, text.find(kRulesMark)) + rules_part(settings);
}

std::string redraw_object_max(const std::string& text, Random& random) {
  const std::size_t at = text.find(kObjectMax) + kObjectMax.size();
  return text.substr(0, at) + object_max(random) + text.substr(text.find('\n', at) + 1);
}

config::Config read_configuration(const std::string& text) {
  auto config = config::parse_config(text, "simulated.toml");
  if (!config) {
    std::fprintf(stderr, "%s\n%s", config.error().message.c_str(), text.c_str());
    std::exit(2);
  }
  return *config;
}

}  // namespace encore::simulate

#include "config/dump.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "config/load.h"
#include "config/schema.h"
#include "tests/catch.h"
#include "tests/config/loaded.h"

using namespace encore;
using namespace encore::config;

TEST_CASE("What is dumped reads back as the same config", "[config][dump]") {
  const std::vector<std::string> sets = GENERATE(
      std::vector<std::string>{},
      std::vector<std::string>{"listen.1.address=[::1]:80", "origin.0.host=*.Example.com",
                               "origin.1.servers=http://a,https://b:1", "cache.memory=1234567",
                               "cache.max_object=1.5MiB", "timeouts.dns=1500ms",
                               "log.access=a \"quoted\\ name", "cache.heuristic_fraction=0.3",
                               "forward.connect_ports=", "cache.query_drop=a,b*"},
      std::vector<std::string>{"admission.bits=1000000", "admission.hashes=5"},
      std::vector<std::string>{"admission.bits=1000000", "admission.capacity=77777"});
  const Config config = with(sets);
  const auto back = parse_config(dump_config(config), "dump");
  INFO((back ? std::string() : back.error().message));
  REQUIRE(back.has_value());
  CHECK(*back == config);
}

TEST_CASE("A dump leaves the seed out and shows its fingerprint", "[config][dump]") {
  const std::string text = dump_config(with({"admission.seed=feedbeef"}));
  CHECK(text.find("feedbeef") == std::string::npos);
  CHECK(text.find("seed = \"\"  # set, not shown; fingerprint ") != std::string::npos);
  CHECK(parse_config(text, "dump").has_value());
}

TEST_CASE("Each key of the schema is described, and its default is within its own range",
          "[config][schema]") {
  Config defaults;
  std::set<std::string> paths;
  for (const auto& section : schema()) {
    if (section.repeated) section.resize(defaults, 1);
    for (const auto& key : section.keys) {
      const std::string path = key_path(section, 0, key);
      CAPTURE(path);
      CHECK(paths.insert(path).second);
      CHECK(key.doc.ends_with('.'));
      CHECK_FALSE(accepted_text(key).empty());
      CHECK((key.kind != Kind::kChoice || key.choices.size() > 1));
      CHECK((!key.required || section.repeated));
      // accept() takes canonical numbers of bytes, but durations and choices only as written.
      std::string toml = section.repeated ? "[[" + std::string(section.name) + "]]\n"
                                          : "[" + std::string(section.name) + "]\n";
      const std::string usual = toml_text(key, key.get(section.at(defaults, 0)));
      for (const auto& other : section.keys) {
        if (!other.required) continue;
        const bool is_text = other.kind == Kind::kText;
        toml += std::string(other.name) + (is_text ? " = \"x\"\n" : " = \"1GiB\"\n");
      }
      if (!key.required && !usual.empty()) toml += std::string(key.name) + " = " + usual;
      const auto config = parse_config(toml, "default");
      INFO((config ? std::string() : config.error().message));
      CHECK(config.has_value());
      // If a key is required, its value in the struct is not a default.
      const std::string list = "[[" + std::string(section.name) + "]]\n";
      CHECK((!key.required ||
             !parse_config(list + std::string(key.name) + " = " + usual, "default").has_value()));
    }
  }
  CHECK(paths.size() > 80);
}

TEST_CASE("The choices of layout and hash are the filter's own names", "[config][schema]") {
  const auto* admission = find_section("admission");
  const auto layouts = find_key(*admission, "layout")->choices;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    CHECK(to_string(static_cast<filter::Layout>(i)) == layouts[i]);
  }
  const auto hashes = find_key(*admission, "hash")->choices;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    CHECK(to_string(static_cast<filter::HashFamily>(i)) == hashes[i]);
  }
}

TEST_CASE("docs/CONFIG.md is what the schema says", "[config][docs]") {
  std::ifstream file(ENCORE_SOURCE_DIR "/docs/CONFIG.md");
  std::stringstream text;
  text << file.rdbuf();
  INFO("./dev docs writes it anew");
  CHECK(text.str() == document_config());
}

TEST_CASE("The whole file that is printed for the defaults is accepted", "[config][docs]") {
  Config defaults;
  defaults.disk.clear();  // required keys of a disk have no default
  defaults.rule.clear();
  const std::string text = dump_config(defaults);
  REQUIRE(text.find("[cache]") != std::string::npos);
  const auto config = parse_config(text, "whole.toml");
  INFO((config ? std::string() : config.error().message));
  CHECK(config.has_value());
}

TEST_CASE("A reload is blocked by what an upgrade or a restart changes", "[config][reload]") {
  const Config running = with({});
  CHECK(reload_blockers(running, running).empty());
  CHECK(
      reload_blockers(running, with({"log.level=debug", "admission.fpr=0.1", "cache.eviction=lru"}))
          .empty());
  const auto blockers = reload_blockers(
      running, with({"cache.shards=8", "workers.count=9", "listen.1.address=127.0.0.1:1"}));
  REQUIRE(blockers.size() == 2);
  CHECK(blockers[0].path == "cache.shards");
  CHECK(blockers[1].path == "workers.count");
  CHECK(blockers_text(blockers) ==
        "`encore upgrade` is needed for cache.shards (each key belongs to a shard), workers.count "
        "(each worker has its own connections); no request fails");
  const auto both = reload_blockers(running, with({"cache.shards=8", "log.decisions=j"}));
  CHECK(blockers_text(both) ==
        "a restart is needed for log.decisions (the journal is one file from start to end)");
}

TEST_CASE("Each key that a reload cannot change says why, and at most three take a restart",
          "[config][reload]") {
  std::vector<std::string> restart;
  for (const auto& section : schema()) {
    for (const auto& key : section.keys) {
      CAPTURE(section.name, key.name);
      CHECK((key.apply == Apply::kReload) == key.not_reloaded.empty());
      if (key.apply == Apply::kRestart) restart.emplace_back(key.name);
    }
  }
  CHECK(restart == std::vector<std::string>{"path", "size", "decisions"});
}

TEST_CASE("The nearest word is found within a third of its letters", "[config][text]") {
  const std::vector<std::string_view> words = {"memory", "shards", "max_object"};
  CHECK(nearest("memroy", words) == "memory");
  CHECK(nearest("Memory", words) == "memory");
  CHECK(nearest("shard", words) == "shards");
  CHECK(nearest("maxobject", words) == "max_object");
  CHECK(nearest("colour", words).empty());
  CHECK(nearest("", words).empty());
  CHECK(nearest(std::string(1000, 'm'), words).empty());
}

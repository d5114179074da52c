#include "proxy/process/start_check.h"

#include <algorithm>
#include <filesystem>

#include "proxy/net/listener.h"
#include "proxy/net/socket.h"
#include "proxy/net/socket_options.h"
#include "proxy/process/disk_start.h"
#include "proxy/process/state.h"
#include "tests/catch.h"
#include "tests/names_seen.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

// A listener of somebody else, and its address.
struct OccupiedPort {
  net::Socket listener =
      net::listen_on(net::Address::loopback_v4(0), 1, net::SharePort::kNo).value();
  std::string address = net::bound_address(listener).to_string();
};

config::Config sound_config() {
  config::Config config;
  config.listen = {{.address = "127.0.0.1:0", .mode = config::Mode::kForward}};
  config.admin.address = {"127.0.0.1:0"};
  config.cache.memory_bytes = 8 * kMiB;
  config.cache.shards = 1;
  return config;
}

std::vector<std::string> keys_at_fault(const config::Config& config) {
  std::vector<std::string> keys;
  for (const StartCheck::Fault& fault : check_start(config).faults) {
    CAPTURE(fault.key);
    CHECK_FALSE(fault.what.empty());
    keys.push_back(fault.key);
  }
  return keys;
}

using Keys = std::vector<std::string>;

TEST_CASE("a config that would start has no faults, and leaves nothing behind", "[server][start]") {
  const TemporaryDirectory place;
  config::Config config = sound_config();
  config.log.access = place / "access.log";
  config.log.decisions = place / "decisions";
  config.state.directory = place / "state";
  config.disk = {{.path = place / "disk", .size_bytes = 8 * kMiB, .segment_bytes = kMiB}};
  const NamesSeen seen(place.path());
  const StartCheck check = check_start(config);
  // Not for a moment: somebody else may be about to make them.
  for (const char* const name : {"access.log", "decisions", "disk"}) CHECK_FALSE(seen.has(name));
  CHECK(check.faults.empty());
  CHECK(check.notes.empty());
  CHECK(std::filesystem::is_empty(place.path()));
}

TEST_CASE("a disk that a start would refuse is named, and none is made", "[server][start]") {
  const TemporaryDirectory place;
  config::Config config = sound_config();
  config.disk = {{.path = place / "new", .size_bytes = 8 * kMiB, .segment_bytes = kMiB}};
  CHECK(keys_at_fault(config).empty());
  CHECK(std::filesystem::is_empty(place.path()));
  SECTION("what is no disk") {
    write_text(place / "letter", std::string(10'000, 'a'));
    config.disk.push_back({.path = place / "letter", .size_bytes = 8 * kMiB, .segment_bytes = 0});
    CHECK(keys_at_fault(config) == Keys{"disk.1.path"});
  }
  SECTION("no directory for it") {
    config.disk[0].path = place / "none/of/these/disk";
    CHECK(keys_at_fault(config).empty());
    CHECK(std::filesystem::is_empty(place.path()));
    const auto opened = open_disks(config, {1, 2}, false);
    REQUIRE(opened.has_value());
    using std::filesystem::perms;
    for (const char* const made : {"none", "none/of", "none/of/these"}) {
      CHECK(std::filesystem::status(place / made).permissions() == perms::owner_all);
    }
  }
  SECTION("no directory for it, nor can one be made") {
    write_text(place / "file", "");
    config.disk[0].path = place / "file/none/disk";
    CHECK(keys_at_fault(config) == Keys{"disk.0.path"});
    const std::string told = " -m 0700 " + place / "file/none";
    CHECK(check_start(config).faults[0].what.ends_with(told));
    const auto opened = open_disks(config, {1, 2}, false);
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().message.ends_with(told));
    CHECK(opened.error().message.find("make it with: sudo install -d -o ") != std::string::npos);
  }
  SECTION("no room for it") {
    config.disk[0].size_bytes = std::uint64_t{1} << 60U;
    CHECK(keys_at_fault(config) == Keys{"disk.0.path"});
  }
  SECTION("of another seed") {
    auto made = open_disks(config, {1, 2}, false);
    REQUIRE(made.has_value());
    made->reset();
    CHECK(keys_at_fault(config).empty());
    config.admission.seed = "00000000000000000000000000000007";
    CHECK(keys_at_fault(config) == Keys{"disk.0.path"});
    config.admission.seed = "";
    config.disk.push_back({.path = place / "other", .size_bytes = 8 * kMiB, .segment_bytes = kMiB});
    config::Config other = config;
    other.disk.erase(other.disk.begin());
    made = open_disks(other, {3, 4}, false);
    REQUIRE(made.has_value());
    made->reset();
    CHECK(keys_at_fault(config) == Keys{"disk"});
  }
}

TEST_CASE("every address that is taken is named", "[server][start]") {
  const OccupiedPort first;
  const OccupiedPort second;
  config::Config config = sound_config();
  config.listen.push_back({.address = first.address, .mode = config::Mode::kForward});
  config.admin.address = {second.address};
  const StartCheck check = check_start(config);
  REQUIRE(check.faults.size() == 2);
  CHECK(check.faults[0].key == "listen.1.address");
  CHECK(check.faults[0].what.find(first.address) != std::string::npos);
  CHECK(check.faults[1].key == "admin.address");
  CHECK(check.faults[1].what.find(second.address) != std::string::npos);
}

TEST_CASE("all faults are told at once, each with its key", "[server][start]") {
  const TemporaryDirectory place;
  write_text(place / "file", "no directory, and no certificate");
  config::Config config = sound_config();
  config.log.access = place / "missing/access.log";
  config.log.decisions = place / "file/decisions";
  config.state.directory = place / "file/state";
  config.upstream.tls_ca_file = place / "missing.pem";
  CHECK(keys_at_fault(config) ==
        Keys{"log.access", "log.decisions", "state.directory", "upstream.tls_ca_file"});
}

TEST_CASE("what permissions do not tell is found by trying it", "[server][start]") {
  const TemporaryDirectory place;
  const std::string long_name(300, 'a');
  config::Config config = sound_config();
  SECTION("names that no file system takes") {
    config.log.access = place / long_name;
    config.state.directory = place / ("made/" + long_name + "/state");
    config.disk = {{.path = place / long_name, .size_bytes = 8 * kMiB, .segment_bytes = kMiB}};
    CHECK(keys_at_fault(config) == Keys{"log.access", "state.directory", "disk.0.path"});
  }
  SECTION("a file system that takes none") {
    // Root may write there, and makes nothing all the same.
    config.log.access = "/proc/encore.log";
    config.state.directory = "/proc/encore/state";
    config.disk = {{.path = "/proc/encore.disk", .size_bytes = 8 * kMiB, .segment_bytes = kMiB}};
    config.listen.push_back({.address = "unix:/proc/encore.sock", .mode = config::Mode::kForward});
    CHECK(keys_at_fault(config) ==
          Keys{"listen.1.address", "log.access", "state.directory", "disk.0.path"});
  }
  CHECK(std::filesystem::is_empty(place.path()));
}

TEST_CASE("a state directory is made as a start makes it, and nothing of it stays",
          "[server][start]") {
  const TemporaryDirectory place;
  config::Config config = sound_config();
  std::filesystem::create_directories(place / "there");
  for (const char* directory : {"a/b/c", "a/b/c/", "there/../x", "there/y/."}) {
    CAPTURE(directory);
    config.state.directory = place / directory;
    CHECK(keys_at_fault(config).empty());
    CHECK(std::distance(std::filesystem::recursive_directory_iterator(place.path()), {}) == 1);
  }
  // Its lock has to be a file that can be opened.
  config.state.directory = place / "there";
  std::filesystem::create_directories(place / "there/lock");
  CHECK(keys_at_fault(config) == Keys{"state.directory"});
  CHECK_FALSE(StateDirectory::open(place / "there").has_value());
}

TEST_CASE("an origin's certificates are looked at where they would be used", "[server][start]") {
  const TemporaryDirectory place;
  config::Config config = sound_config();
  config.listen[0].mode = config::Mode::kReverse;
  config.origin.resize(3);
  config.origin[0].servers = {"http://127.0.0.1:1"};
  config.origin[0].tls_ca_file = place / "unused.pem";
  config.origin[1].servers = {"http://127.0.0.1:1", "https://127.0.0.1:2"};
  config.origin[1].host = "b.test";
  config.origin[1].tls_ca_file = place / "missing.pem";
  config.origin[2].servers = {"https://127.0.0.1:3"};
  config.origin[2].host = "c.test";
  CHECK(keys_at_fault(config) == Keys{"origin.1.tls_ca_file"});
}

TEST_CASE("memory that does not hold what is asked for is found before the start",
          "[server][start]") {
  config::Config config = sound_config();
  config.admission.bits = 2 * filter::kBitsMax;
  config.admission.hashes = 8;
  CHECK(keys_at_fault(config) == Keys{"admission.capacity"});
}

TEST_CASE("state that a running encore holds is no fault, but worth a note", "[server][start]") {
  const TemporaryDirectory place;
  const auto held = StateDirectory::open(place / "state");
  REQUIRE(held.has_value());
  config::Config config = sound_config();
  config.state.directory = place / "state";
  const StartCheck check = check_start(config);
  CHECK(check.faults.empty());
  REQUIRE(check.notes.size() == 1);
  CHECK(check.notes[0].find(place / "state") != std::string::npos);
}

TEST_CASE("what an ACME client makes later is no fault, but worth a note", "[server][start]") {
  const TemporaryDirectory place;
  config::Config config = sound_config();
  config.acme.challenge_directory = place / "acme";
  const std::string files = "certificate=" + (place / "a.pem") + "\nkey=" + (place / "a.key");
  config.listen[0].tls = {config::TlsPairText(files + "\nmissing=self-signed\n")};
  const StartCheck check = check_start(config);
  CHECK(check.faults.empty());
  REQUIRE(check.notes.size() == 2);
  CHECK(check.notes[0].contains("clients get a self-signed one for localhost"));
  CHECK(check.notes[1].contains("acme.challenge_directory: "));
  CHECK(std::filesystem::is_empty(place.path()));
  config.listen[0].tls = {config::TlsPairText(files + "\n")};
  CHECK(keys_at_fault(config) == Keys{"listen.0.tls"});
}

TEST_CASE("a coding that has no room for one encoder is worth a note", "[server][start]") {
  config::Config config = sound_config();
  config.compression.codings = {"zstd", "br", "gzip"};
  config.compression.memory_bytes = 2 * kMiB;
  config.compression.br_level = 3;
  StartCheck check = check_start(config);
  CHECK(check.faults.empty());
  CHECK(check.notes ==
        std::vector<std::string>{"compression.memory is 2MiB: nothing is sent in zstd, which needs "
                                 "2.5MiB per response in progress"});
  config.compression.codings = {"gzip", "br"};
  CHECK(check_start(config).notes.empty());
  config.compression.br_level = 4;
  CHECK(check_start(config).notes.size() == 1);
}

TEST_CASE("an engine without a password that it needs is a fault, one that is down a note",
          "[server][start]") {
  const TemporaryDirectory place;
  config::Config config = sound_config();
  config.fleet.purges = config::OptionalRedisUrlText("unix://" + (place / "no.sock"));
  const StartCheck down = check_start(config);
  CHECK(down.faults.empty());
  REQUIRE(down.notes.size() == 1);
  CHECK(down.notes[0].starts_with("fleet.purges: cannot connect to unix://" + (place / "no.sock")));
  config.fleet.password_file = place / "password";
  CHECK(keys_at_fault(config) == Keys{"fleet.password_file"});
  CHECK(check_start(config).faults[0].what == (place / "password") + ": No such file or directory");
  config.fleet.password_file.clear();
  config.fleet.purges = config::OptionalRedisUrlText("unix://user:@" + (place / "no.sock"));
  CHECK(keys_at_fault(config) == Keys{"fleet.password_file"});
}

}  // namespace
}  // namespace encore::server

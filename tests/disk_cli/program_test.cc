#include "proxy/disk/cli/program.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/units.h"
#include "proxy/disk/cli/saved_text.h"
#include "proxy/disk/cli/shown.h"
#include "proxy/disk/cli/wear.h"
#include "tests/catch.h"
#include "tests/disk_cli/made/made_disk.h"
#include "tests/temporary_directory.h"

namespace encore::disk {
namespace {

using server::read_text;
using server::TemporaryDirectory;
using server::write_text;
using Json = nlohmann::json;

constexpr WallSeconds kNow = 1'800'000'000;

struct Ran {
  int exit_code = 0;
  std::string out;
  std::string err;
};

Ran run(const std::string& line) {
  std::istringstream words(line);
  std::ostringstream out;
  std::ostringstream err;
  Ran ran;
  ran.exit_code =
      run_program({std::istream_iterator<std::string>(words), {}}, {.out = out, .err = err}, kNow);
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

// Exit 2, nothing printed, and one line on standard error, which says this.
void check_refused(const Ran& ran, const std::string& because) {
  CAPTURE(ran.err, because);
  CHECK(ran.exit_code == 2);
  CHECK(ran.out.empty());
  CHECK(ran.err.find(because) != std::string::npos);
  CHECK(std::ranges::count(ran.err, '\n') == 1);
}

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::vector<std::string> urls(const std::string& options, const std::string& path) {
  const Ran ran = run("list --json " + options + " " + path);
  CAPTURE(ran.err);
  REQUIRE(ran.exit_code == 0);
  CHECK(ran.err.empty());
  std::vector<std::string> urls;
  for (const Json& line : lines_of(ran.out)) urls.push_back(line["url"]);
  return urls;
}

using Urls = std::vector<std::string>;

class Made {
 public:
  Made() {
    auto file = open_file(path, FileUse::kMake);
    REQUIRE(file);
    file_ = std::move(*file);
    disk = std::make_unique<MadeDisk>(*file_, 4 * kMiB, 256 * kKiB, kNow - 9000);
  }
  // The size stays.
  void flip(std::uint64_t at) const {
    std::string bytes = read_text(path);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    write_text(path, bytes);
  }

  TemporaryDirectory directory;
  std::string path = directory / "disk";
  std::unique_ptr<MadeDisk> disk;

 private:
  std::unique_ptr<File> file_;
};

// Three hosts, a variant, and what is gone.
struct Site : Made {
  Site() {
    disk->write({.url = "http://gone.example/", .body_bytes = 10, .stored_at = kNow - 8000});
    disk->write({.url = "http://a.example/old", .body_bytes = 100, .stored_at = kNow - 7000});
    disk->write({.url = "http://a.example/tagged", .tags = {"news", "x"}, .body_bytes = 7});
    disk->write({.url = "http://b.example:8080/large",
                 .body_bytes = 100'000,
                 .stored_at = kNow - 6000,
                 .fresh_for = 6100});
    for (const std::string coding : {"gzip", "br"}) {
      disk->write({.url = "https://A.example/v",
                   .names = "accept-encoding,accept-language",
                   .variant_key = coding,
                   .body_bytes = 5000,
                   .stored_at = kNow - 90,
                   .fresh_for = 60});
    }
    disk->write({.url = "http://a.example/old", .body_bytes = 101, .stored_at = kNow - 10});
    disk->write({.url = "http://c.example/", .body_bytes = 1, .realm = "r0a1b2c:"});
    disk->purge_url({.url = "http://gone.example/"});
    disk->purge_tag("news");
    disk->write({.url = "http://a.example/tagged2", .tags = {"news"}, .body_bytes = 8});
    disk->stop();
  }
};

}  // namespace

TEST_CASE("objects are listed as the proxy knows them", "[disk-cli]") {
  const Site site;
  const std::string& path = site.path;
  CHECK(urls("", path) == Urls{"http://a.example/tagged2", "http://c.example/",
                               "http://a.example/old", "https://A.example/v", "https://A.example/v",
                               "http://b.example:8080/large"});
  CHECK(urls("--limit 2", path) == Urls{"http://a.example/tagged2", "http://c.example/"});
  CHECK(urls("--sort size --limit 1", path) == Urls{"http://b.example:8080/large"});
  CHECK(urls("--sort size", path).back() == "http://c.example/");
  CHECK(urls("--sort age --limit 2 --key http", path).size() == 2);
  CHECK(urls("--sort age", path).back() == "http://a.example/old");
  CHECK(urls("--sort key --limit 2", path) ==
        Urls{"http://a.example/old", "http://a.example/tagged2"});
  CHECK(urls("--host a.example", path).size() == 4);
  CHECK(urls("--host ?.EXAMPLE --limit 0", path).size() == 6);
  CHECK(urls("--host b*", path) == Urls{"http://b.example:8080/large"});
  CHECK(urls("--host example", path).empty());
  CHECK(urls("--key http://a.example/o", path) == Urls{"http://a.example/old"});

  const Json large = lines_of(run("list --json --host b.example " + path).out).at(0);
  CHECK(large["bytes"] == 100'000);
  CHECK(large["age"] == 6000);
  CHECK(large["fresh_for"] == 100);
  CHECK(large["version"] == 4);
  CHECK(large["segment"] == 0);
  CHECK(large["realm"] == "forward:");
  CHECK(large["varies_by"].empty());
  const Json other = lines_of(run("list --json --key https " + path).out).at(0);
  CHECK(other["varies_by"] == Json{"accept-encoding", "accept-language"});
  CHECK(other["fresh_for"] == -30);
  CHECK(lines_of(run("list --json --host c.example " + path).out).at(0)["realm"] == "r0a1b2c:");
}

TEST_CASE("a list for people has a heading and a line an object", "[disk-cli]") {
  const Site site;
  const Ran ran = run("list --sort key --limit 5 --key http " + site.path);
  CHECK(ran.exit_code == 0);
  CHECK(ran.out ==
        "    SIZE    AGE  FRESHNESS     SEGMENT     VERSION  VARIES BY         URL\n"
        "    101B    10s  stale 10s           0           7  -                 "
        "http://a.example/old\n"
        "      8B 20833d  stale 20833d        0          11  -                 "
        "http://a.example/tagged2\n"
        " 97.7KiB     1h  fresh 1m            0           4  -                 "
        "http://b.example:8080/large\n"
        "      1B 20833d  stale 20833d        0           8  -                 "
        "http://c.example/\n"
        "  4.9KiB     1m  stale 30s           0           6  accept-encoding,accept-language  "
        "https://A.example/v\n");
  // Text that no proxy has written reaches a terminal without control characters.
  CHECK(shown_text("a\x1b[31m b\n\xff%") == "a%1B[31m%20b%0A%FF%");
}

TEST_CASE("a sound disk verifies, a damaged one is exit 1 and says where", "[disk-cli]") {
  const Site site;
  Ran ran = run("verify " + site.path);
  CHECK(ran.exit_code == 0);
  CHECK(ran.out.starts_with(site.path + ": sound\n"));
  const Json large = lines_of(run("list --json --host b.example " + site.path).out).at(0);
  const Json stat = lines_of(run("stat --json " + site.path).out).at(0);
  const std::uint64_t data =
      stat["bytes"].get<std::uint64_t>() - stat["segments"].get<std::uint64_t>() * 256 * kKiB;
  site.flip(data + large["offset"].get<std::uint64_t>() + 70'000);
  ran = run("verify " + site.path);
  CHECK(ran.exit_code == 1);
  CHECK(ran.out.find("damaged in 1 place\n") != std::string::npos);
  CHECK(ran.out.find("record, segment 0, offset " + large["offset"].dump() +
                     ": its body is not whole; http://b.example:8080/large\n") !=
        std::string::npos);
  const Json json = lines_of(run("verify --json " + site.path).out).at(0);
  CHECK(json["sound"] == false);
  CHECK(json["records"] == 8);
  CHECK(json["damage"][0]["url"] == "http://b.example:8080/large");
  // One of its text is not listed, and that is said.
  site.flip(data + large["offset"].get<std::uint64_t>() + 140);
  ran = run("list " + site.path);
  CHECK(ran.exit_code == 0);
  CHECK(ran.err == "encore disk list: 1 record cannot be read; encore disk verify " + site.path +
                       " says which\n");
  // Among several the worst counts, and each is checked.
  ran = run("verify " + (site.directory / "none") + " " + site.path);
  CHECK(ran.exit_code == 2);
  CHECK(ran.out.find("damaged in 1 place\n") != std::string::npos);
  CHECK(ran.err.find("No such file") != std::string::npos);
}

TEST_CASE("numbers of a disk for scripts and for people", "[disk-cli]") {
  const Site site;
  const Json stat = lines_of(run("stat --json --top 1 " + site.path).out).at(0);
  CHECK(stat["objects"]["records"] == 6);
  CHECK(stat["purged"]["records"] == 2);
  CHECK(stat["replaced"]["records"] == 1);
  CHECK(stat["hosts_all"] == 4);
  CHECK(stat["hosts"] == Json{{{"host", "b.example"}, {"objects", 1}, {"bytes", 100'000}}});
  // As text, each table has a head.
  const std::string text = run("stat --top 1 " + site.path).out;
  std::size_t at = 0;
  for (const std::string_view head : {"hosts: 4", "ages", "sizes"}) {
    CAPTURE(head, text);
    at = text.find("\n  " + std::string(head) + " ", at);
    REQUIRE(at != std::string::npos);
  }
  CHECK(stat["purge_log_entries"] == 2);
  CHECK(stat["made_at"] == kNow - 9000);
  CHECK(stat["segments_used"] == 1);
  CHECK(stat["sizes"][3]["objects"] == 0);
  CHECK(stat["sizes"][2]["bytes"] == 100'000);
  const Ran ran = run("stat " + site.path);
  CHECK(ran.exit_code == 0);
  for (const auto* const part :
       {"15 segments of 256KiB, 1 used, 14 free", "made        2027-01-15 05:30:00 UTC, 2h ago",
        "6 objects", "2 entries", "hosts: 4", "b.example"}) {
    CAPTURE(part, ran.out);
    CHECK(ran.out.find(part) != std::string::npos);
  }
}

TEST_CASE("of an object in parts those on all disks are counted", "[disk-cli]") {
  const TemporaryDirectory directory;
  const std::vector<std::string> paths = {directory / "a", directory / "b"};
  std::vector<std::unique_ptr<File>> files;
  std::vector<std::unique_ptr<MadeDisk>> disks;
  for (const std::string& path : paths) {
    auto file = open_file(path, FileUse::kMake);
    REQUIRE(file);
    files.push_back(std::move(*file));
    disks.push_back(std::make_unique<MadeDisk>(*files.back(), 40 * kMiB, 8 * kMiB, kNow - 9000));
  }
  const MadeObject film{.url = "http://a.example/film",
                        .body_bytes = 10 * kMiB,
                        .stored_at = kNow - 60,
                        .fresh_for = 3600};
  disks[0]->write_part(film, 0);
  disks[1]->write_part(film, 1);
  disks[0]->write_part(film, 2);
  disks[0]->write_head(film);
  disks[0]->write({.url = "http://a.example/", .body_bytes = 9, .stored_at = kNow - 60});
  for (const auto& disk : disks) disk->stop();
  const std::string both = paths[0] + " " + paths[1];
  const auto film_in = [](const std::string& on) {
    return lines_of(run("list --json --sort size " + on).out).at(0);
  };
  CHECK(film_in(paths[0])["bytes"] == 10 * kMiB);
  CHECK(film_in(paths[0])["parts"] == 3);
  CHECK(film_in(paths[0])["parts_there"] == 2);
  CHECK(film_in(both)["parts_there"] == 3);
  CHECK(urls("--sort size", both) == Urls{"http://a.example/film", "http://a.example/"});
  CHECK(run("list " + paths[0])
            .out.find("  incomplete          0           3  -                 "
                      "http://a.example/film (2 of 3 parts)\n") != std::string::npos);
  CHECK(run("list " + both).out.find("http://a.example/film (3 parts)\n") != std::string::npos);
  const auto stat = [](const std::string& on) { return lines_of(run("stat --json " + on).out); };
  CHECK(stat(paths[0]).at(0)["incomplete"]["records"] == 1);
  CHECK(stat(paths[0]).at(0)["objects"]["records"] == 1);
  CHECK(stat(both).at(0)["incomplete"]["records"] == 0);
  CHECK(stat(both).at(0)["objects"]["records"] == 2);
  CHECK(stat(both).at(0)["parts"]["records"] == 2);
  CHECK(stat(both).at(1)["parts"]["records"] == 1);
  CHECK(stat(both).at(0)["sizes"][4]["bytes"] == 10 * kMiB);
  // It is no damage.
  const Ran verified = run("verify " + paths[0]);
  CHECK(verified.exit_code == 0);
  CHECK(verified.out.find("sound: 4 records of ") != std::string::npos);
  CHECK(verified.out.find("(2 of them parts of larger bodies)") != std::string::npos);
  CHECK(run("list " + paths[0] + " " + (directory / "none")).exit_code == 2);
}

TEST_CASE("no seed is shown", "[disk-cli]") {
  const Site site;
  for (const auto* const command :
       {"stat ", "stat --json ", "verify ", "verify --json ", "list ", "list --json "}) {
    const std::string out = run(command + site.path).out;
    for (const auto* const secret :
         {"5ec2e75eed5ec2e7", "ddba11c0ffee000", "6827017786706420455", "989010246018232320"}) {
      CHECK(out.find(secret) == std::string::npos);
    }
  }
}

TEST_CASE("what cannot be looked at is refused with its path and a reason", "[disk-cli]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "disk";
  for (const std::string command : {"list ", "verify ", "stat "}) {
    check_refused(run(command + path), "cannot open disk " + path + ": No such file or directory");
    check_refused(run(command + directory.path()),
                  "it is a directory; name a file in it, as " + directory.path() + "/disk");
    write_text(path, "");
    check_refused(run(command + path), "disk " + path + " is empty");
    write_text(path, std::string(1 << 20U, 'x'));
    check_refused(run(command + path), "disk " + path + " holds something that encore has not");
    ::unlink(path.c_str());
    check_refused(run(command), "PATH is required");
    check_refused(run(command + "--jsn " + path), "unknown option \"--jsn\", did you mean");
    CHECK(run(command + "--help").exit_code == 0);
    CHECK(run(command + "--help").out.find("Example:\n  encore disk " + command) !=
          std::string::npos);
  }
  check_refused(run("list --sort hot " + path),
                "--sort \"hot\", accepted: written, size, age, key");
  check_refused(run("list --limit -1 " + path), "--limit \"-1\", accepted: a whole number");
  check_refused(run("stat --top x " + path), "--top \"x\", accepted: a whole number");
  const Ran unknown = run("lst " + path);
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("unknown command \"lst\", did you mean \"list\"?") != std::string::npos);
}

TEST_CASE("a disk of which neither superblock or purge log is whole cannot be listed",
          "[disk-cli]") {
  const Site site;
  const std::string whole = read_text(site.path);
  site.flip(40);
  CHECK(run("list " + site.path).exit_code == 0);
  CHECK(run("verify " + site.path).exit_code == 1);
  site.flip(65536 + 40);
  check_refused(run("verify " + site.path), "is damaged: neither of its two superblocks is whole");
  write_text(site.path, whole);
  site.flip(131072 + 30);
  CHECK(run("stat " + site.path).exit_code == 0);
  site.flip(131072 + 65536 + 30);
  check_refused(run("stat " + site.path), "what was purged cannot be read");
  const Ran ran = run("verify " + site.path);
  CHECK(ran.exit_code == 1);
  CHECK(ran.out.find("purge log, offset 131072: neither copy can be read") != std::string::npos);
}

TEST_CASE("an open segment's last record may be unfinished", "[disk-cli]") {
  Made made;
  made.disk->write({.url = "http://a.example/1", .body_bytes = 1000});
  made.disk->write({.url = "http://a.example/2", .body_bytes = 1000});
  made.disk->flush();
  CHECK(urls("", made.path) == Urls{"http://a.example/2", "http://a.example/1"});
  const Json last = lines_of(run("list --json --key http://a.example/2 " + made.path).out).at(0);
  const Json stat = lines_of(run("stat --json " + made.path).out).at(0);
  CHECK(stat["segments_unsealed"] == 1);
  const std::uint64_t data =
      stat["bytes"].get<std::uint64_t>() - stat["segments"].get<std::uint64_t>() * 256 * kKiB;
  made.flip(data + last["offset"].get<std::uint64_t>() + 800);
  const Ran ran = run("verify " + made.path);
  CHECK(ran.exit_code == 0);
  CHECK(ran.out.find("not finished: 1 at the end") != std::string::npos);
}

TEST_CASE("what a record's text says", "[disk-cli]") {
  CHECK(host_of("https://www.example.org/a") == "www.example.org");
  CHECK(host_of("https://www.example.org:8443?q") == "www.example.org");
  CHECK(host_of("http://[::1]:80/") == "[::1]");
  CHECK(host_of("http://[::1") == "");
  CHECK(host_of("no url").empty());
  CHECK(host_of("").empty());
  // If a record is not the proxy's, only its key is known.
  const SavedText text =
      saved_text({.key = "forward:http://a/", .names = "", .meta = "m", .head = ""});
  CHECK(text.url == "http://a/");
  CHECK(text.realm == "forward:");
  CHECK(text.tags.empty());
  CHECK(saved_text({.key = "https://a/", .names = "", .meta = "", .head = ""}).url == "https://a/");
}

TEST_CASE("a prefix that was purged of one reverse listener is so of all", "[disk-cli]") {
  const auto is_dead = [](std::string_view key, std::string prefix) {
    Purge purge;
    purge.kind = PurgeKind::kPrefix;
    purge.version = 9;
    purge.pattern = std::move(prefix);
    RecordFields fields;
    fields.version = 8;
    return is_purged(purge, fields, {.key = key, .names = "", .meta = "", .head = ""});
  };
  CHECK(is_dead("forward:http://a/b", "forward:http://a/"));
  CHECK(is_dead("r012345:http://a/b", "r999999:http://a/"));
  CHECK_FALSE(is_dead("r012345:http://a/b", "forward:http://a/"));
  CHECK_FALSE(is_dead("forward:http://a/b", "r012345:http://a/"));
  CHECK_FALSE(is_dead("r012345:http://b/", "r012345:http://a/"));
  CHECK_FALSE(is_dead("short", "short"));
}

TEST_CASE("spans have their largest unit, and times are UTC", "[disk-cli]") {
  CHECK(shown_span(0) == "0s");
  CHECK(shown_span(59) == "59s");
  CHECK(shown_span(60) == "1m");
  CHECK(shown_span(3599) == "59m");
  CHECK(shown_span(3600) == "1h");
  CHECK(shown_span(2 * 86'400 - 1) == "47h");
  CHECK(shown_span(2 * 86'400) == "2d");
  CHECK(shown_time(0) == "1970-01-01 00:00:00 UTC");
  CHECK(shown_time(1'709'210'096) == "2024-02-29 12:34:56 UTC");
}

TEST_CASE("the wear of a disk is of its device, by what is written a day", "[disk-cli]") {
  Made made;
  CHECK(look_at_wear(made.directory / "none", kTiB, kNow)->has_value() == false);
  for (int i = 0; i < 8; ++i) {
    made.disk->write({.url = "http://a.example/" + std::to_string(i),
                      .body_bytes = 100'000,
                      .stored_at = kNow - 7200});
  }
  made.disk->stop();
  const auto wear = look_at_wear(made.path, kTiB, kNow);
  REQUIRE(wear);
  REQUIRE(*wear);
  CHECK_THAT(**wear, Catch::Contains("MiB a day, at which the 1TiB that its device is rated for"));
}

}  // namespace encore::disk

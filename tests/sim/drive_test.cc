// The requests and expectations of drive, and its refusal of bad input; the real proxy is in
// tests/e2e.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <vector>

#include "sim/drive/cache_outcome.h"
#include "sim/drive/client.h"
#include "sim/drive/driven_object.h"
#include "sim/drive/synthetic_origin.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::string kTrace =
    "time,key,size,ttl\n1,a,10,0\n2,b,20,7200\n3,a,30,0\n4,b,20,7200\n"
    "5,a,5,0\n6,b,20,7200\n";

}  // namespace

TEST_CASE("A Cache-Status field is read as one word", "[sim][drive]") {
  CHECK(cache_outcome(" encore; hit; ttl=59") == "hit");
  CHECK(cache_outcome("encore; hit; ttl=59; detail=disk") == "hit");
  CHECK(cache_outcome("encore; hit; ttl=59; detail=probation") == "hit");
  CHECK(cache_outcome("encore; fwd=uri-miss; stored; detail=probation") == "probation");
  CHECK(cache_outcome("encore; fwd=stale; detail=disk") == "disk");
  CHECK(cache_outcome("encore; fwd=uri-miss; stored=?0; detail=first-request") == "first-request");
  CHECK(cache_outcome("encore; fwd=uri-miss; stored; detail=second-request") == "second-request");
  CHECK(cache_outcome("encore; fwd=uri-miss; collapsed") == "collapsed");
  CHECK(cache_outcome("encore; hit; ttl=-3; detail=stale") == "stale");
  CHECK(cache_outcome("encore; fwd=stale; fwd-status=304; detail=revalidated") == "revalidated");
  CHECK(cache_outcome("encore; fwd=stale; collapsed; detail=revalidated") == "revalidated");
  CHECK(cache_outcome("encore; fwd=bypass; detail=destination") == "bypass");
  CHECK(cache_outcome("encore; fwd=uri-miss") == "uri-miss");
  // The cache nearest to the client is the last member; quoted separators separate nothing.
  CHECK(cache_outcome("far; fwd=miss, near; hit") == "hit");
  CHECK(cache_outcome("near; key=\"a, b; hit\"; fwd=miss") == "miss");
  CHECK(cache_outcome("").compare("none") == 0);
  CHECK(cache_outcome("encore").compare("none") == 0);
}

TEST_CASE("A driven object stands in its path, and no other path names one", "[sim][drive]") {
  const DrivenObject object{
      .id = {0x0123456789abcdefU, 0xfedcba9876543210U}, .size_bytes = 1234, .ttl_seconds = 60};
  const std::string path = path_of(object);
  CHECK(path == "/o/fedcba98765432100123456789abcdef/0000001234/0000000060");
  const auto read = object_at(path);
  REQUIRE(read);
  CHECK(read->id == object.id);
  CHECK(read->size_bytes == 1234);
  CHECK(read->ttl_seconds == 60);
  CHECK(path_of({.id = {}, .size_bytes = kDrivenSizeMax, .ttl_seconds = UINT32_MAX}).size() ==
        path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    std::string wrong = path;
    wrong[i] = '?';
    CHECK_FALSE(object_at(wrong));
  }
  CHECK_FALSE(object_at(path + "0"));
  CHECK_FALSE(object_at(path.substr(1)));
  CHECK_FALSE(object_at(""));
}

TEST_CASE("All heads of the synthetic origin have one length", "[sim][drive]") {
  for (const std::uint64_t size : {0ULL, 9ULL, 10ULL, 12345ULL, 9'999'999'999ULL}) {
    std::size_t bytes = std::string(
                            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                            "Content-Length: \r\n\r\n")
                            .size() +
                        std::to_string(size).size();
    for (const auto& [name, value] :
         fields_of({.id = {size, 1}, .size_bytes = size, .ttl_seconds = 7})) {
      bytes += name.size() + value.size() + 4;
    }
    CHECK(bytes == head_bytes());
  }
}

TEST_CASE("A body is checked byte by byte in whatever pieces it comes", "[sim][drive]") {
  const DrivenObject object{.id = {1, 2}, .size_bytes = 10000, .ttl_seconds = 0};
  std::vector<char> body(10000);
  fill_body(object, 0, body);
  std::mt19937 random(7);
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t count = std::min<std::size_t>(1 + random() % 3000, body.size() - at);
    CHECK(is_body(object, at, std::span(body).subspan(at, count)));
    at += count;
  }
  for (const std::size_t at : {std::size_t{0}, std::size_t{4097}, body.size() - 1}) {
    body[at] = static_cast<char>(body[at] ^ 1);
    CHECK_FALSE(is_body(object, 0, body));
    body[at] = static_cast<char>(body[at] ^ 1);
  }
  CHECK_FALSE(is_body({.id = {1, 3}, .size_bytes = 10000, .ttl_seconds = 0}, 0, body));
}

TEST_CASE("The client meets the origin alone: sizes, contents, 404, pace", "[sim][drive]") {
  auto origin = SyntheticOrigin::start("127.0.0.1:0");
  REQUIRE(origin);
  DrivePlan plan;
  for (std::uint64_t i = 0; i < 40; ++i) {
    plan.objects.push_back({.id = {i, i}, .size_bytes = i * i * 40, .ttl_seconds = 0});
    plan.requests.push_back(static_cast<std::uint32_t>(i));
  }
  ClientOptions options{.proxy = "http://" + (*origin)->authority(),
                        .authority = {},
                        .reverse = true,
                        .connections = 3,
                        .rate = 0};
  Monitor monitor;
  for (const double rate : {0.0, 2000.0}) {
    options.rate = rate;
    const auto driven = drive_plan(plan, options, monitor);
    REQUIRE(driven);
    CHECK(driven->answered == 40);
    CHECK(driven->errors + driven->mismatches == 0);
    CHECK(driven->latency_us.size() == 40);
    CHECK(driven->names.name(driven->outcomes[7]) == "none");
  }
  CHECK((*origin)->requests() == 80);

  // If all requests are due, a free connection never waits: a tenth of a second for each request
  // would be a quarter of an hour here.
  DrivePlan many = plan;
  many.requests.resize(10000, 0);
  const ClientOptions at_once{
      .proxy = options.proxy, .authority = {}, .reverse = true, .connections = 1, .rate = kRateMax};
  const auto late = drive_plan(many, at_once, monitor);
  REQUIRE(late);
  CHECK(late->latency_us.size() == 10000);

  // A target that the origin does not have is an error with its status, not a response.
  options.proxy += "/elsewhere";
  const auto driven = drive_plan(plan, options, monitor);
  REQUIRE(driven);
  CHECK(driven->errors == 40);
  REQUIRE(driven->faults.size() == 10);
  CHECK(driven->faults[0].find("status 404") != std::string::npos);

  monitor.stop = true;
  const auto stopped = drive_plan(plan, options, monitor);
  REQUIRE(stopped);
  CHECK(stopped->answered == 0);
}

TEST_CASE("Bad input of drive ends with one line and exit 2", "[sim][drive]") {
  const Directory directory;
  const std::string trace = directory.write("t.csv", kTrace);
  const std::string proxy = " --proxy http://127.0.0.1:1";
  check_refused(run("drive " + trace), "--proxy URL, --config FILE, or both");
  check_refused(run("drive /nonexistent" + proxy), "/nonexistent");
  check_refused(run("drive " + directory.write("empty", "") + proxy), "empty");
  check_refused(run("drive " + trace + proxy), "no proxy answers at http://127.0.0.1:1");
  check_refused(run("drive " + trace + " --proxy ftp://a"), "accepted: http://HOST:PORT");
  check_refused(run("drive " + trace + " --proxy https://127.0.0.1:1"), "http://HOST:PORT");
  check_refused(run("drive " + trace + " --proxy http://192.0.2.1:1"), "--limit");
  check_refused(run("drive " + trace + proxy + " --rate -1"),
                "--rate \"-1\", accepted: a number from 0 to 1000000");
  check_refused(run("drive " + trace + proxy + " --rate nan"), "--rate");
  check_refused(run("drive " + trace + proxy + " --rate 1000001"), "--rate");
  check_refused(run("drive " + trace + proxy + " --connections 0"),
                "--connections \"0\", accepted: a whole number from 1 to 1024");
  check_refused(run("drive " + trace + proxy + " --connections 1025"),
                "--connections \"1025\", accepted: a whole number from 1 to 1024");
  check_refused(run("drive " + trace + proxy + " --limit 0"),
                "--limit \"0\", accepted: a whole number from 1 to");
  check_refused(run("drive " + trace + proxy + " --ttl soon"), "--ttl");
  check_refused(run("drive " + trace + proxy + " --max-size 10GiB"), "--max-size");
  check_refused(run("drive " + trace + proxy + " --size-scale -1"), "--size-scale");
  check_refused(run("drive " + trace + proxy + " --reverse"), "--origin-address");
  check_refused(run("drive " + trace + proxy + " --origin-address nowhere"), "--origin-address");
  check_refused(run("drive " + trace + proxy + " --outcomes /nonexistent/x"), "no proxy answers");
  check_refused(run("drive " + trace + " --config /nonexistent"), "/nonexistent");

  const std::string seeded = directory.write("seeded.toml", "[admission]\nseed = \"01\"\n");
  check_refused(run("drive " + trace + proxy + " --connections 2 --config " + seeded),
                "--connections 1");
  check_refused(run("drive " + trace + " --config " + directory.write("random.toml", "")),
                "no admission.seed");
  const std::string other =
      directory.write("other.toml", "[admission]\nseed = \"01\"\nhash = \"siphash\"\n");
  check_refused(run("drive " + trace + " --config " + other), "accepted: xxh3");
  const std::string by_time =
      directory.write("by_time.toml", "[admission]\nseed = \"01\"\nrotate_after = \"1h\"\n");
  check_refused(run("drive " + trace + " --config " + by_time), "rotate_after");
  const std::string brief = directory.write("brief.csv", "time,key,size,ttl\n1,a,10,59\n");
  check_refused(run("drive " + brief + " --config " + seeded), "a TTL of 59 s");
  check_refused(run("drive " + trace + " --config " + seeded + " --outcomes /nonexistent/outcomes"),
                "cannot write");
}

TEST_CASE("The simulator alone says what a proxy with this config would", "[sim][drive]") {
  const Directory directory;
  const std::string trace = directory.write("t.csv", kTrace);
  const std::string config =
      directory.write("c.toml", "[cache]\nmemory = \"4MiB\"\n[admission]\nseed = \"01\"\n");
  const std::string command = "drive " + trace + " --config " + config +
                              " --origin-address 127.0.0.1:0 --no-timing --outcomes " +
                              directory.at("outcomes");
  const Ran ran = run(command);
  CAPTURE(ran.out, ran.err);
  CHECK(ran.exit_code == 0);
  std::istringstream lines(content_of(directory.at("outcomes")));
  std::vector<std::string> words;
  std::string path;
  for (std::string word; lines >> word >> path;) {
    words.push_back(word);
  }
  // a has a TTL of 0 and its largest size; b never gets old.
  CHECK(words == std::vector<std::string>{"first-request", "first-request", "second-request",
                                          "second-request", "revalidated", "hit"});
  CHECK(path.ends_with("/0000000020/0000007200"));
  CHECK(ran.out.find("simulator") != std::string::npos);
}

}  // namespace encore::sim

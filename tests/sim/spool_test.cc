// The requests that a spool returns, and its message if there is no space for it.
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "sim/cli/request_spool.h"
#include "tests/catch.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

// Sets TMPDIR for as long as it lives.
class TemporaryDirectoryIs {
 public:
  explicit TemporaryDirectoryIs(const std::string& path) {
    const char* old = std::getenv("TMPDIR");
    old_ = old == nullptr ? "/tmp" : old;
    ::setenv("TMPDIR", path.c_str(), 1);
  }
  ~TemporaryDirectoryIs() { ::setenv("TMPDIR", old_.c_str(), 1); }

 private:
  std::string old_;
};

// No file grows above the limit for as long as it lives, as on a full disk.
class FilesAreAtMost {
 public:
  explicit FilesAreAtMost(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FilesAreAtMost() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit old_{};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("A spool gives back what was put in, with the future, and leaves no file behind",
          "[sim][spool]") {
  const auto directory =
      std::filesystem::temp_directory_path() / ("encore_spool_" + std::to_string(::getpid()));
  std::filesystem::create_directory(directory);
  const TemporaryDirectoryIs here(directory.string());
  auto spool = RequestSpool::create();
  REQUIRE(spool);
  CHECK(std::filesystem::is_empty(directory));
  ObjectTable objects;
  std::vector<ReplayRequest> put;
  // More than one batch of the writing and of the reading.
  constexpr std::uint64_t kRequests = 40000;
  constexpr std::uint64_t kObjects = 3000;
  for (std::uint64_t i = 0; i < kRequests; ++i) {
    const std::string key = std::to_string(i * i % kObjects);
    put.push_back(objects.number({.key = filter::identify({}, key).hash,
                                  .time_ns = static_cast<std::int64_t>(i),
                                  .size_bytes = i % 100,
                                  .ttl_seconds = static_cast<std::uint32_t>(i % 7)}));
  }
  REQUIRE(spool->append(std::span(put).first(100)));
  REQUIRE(spool->append(std::span(put).subspan(100)));
  Monitor monitor;
  REQUIRE(spool->link_next(objects.objects(), monitor));
  std::vector<std::uint64_t> next(objects.objects(), kNeverAgain);
  for (std::size_t i = put.size(); i != 0; --i) {
    put[i - 1].next = std::exchange(next[put[i - 1].object], i - 1);
  }
  SpoolReader reader(*spool, objects);
  std::size_t at = 0;
  for (auto part = reader.read(); part && !part->empty(); part = reader.read()) {
    for (const ReplayRequest& got : *part) {
      const ReplayRequest& want = put[at++];
      REQUIRE(got.key == want.key);
      REQUIRE(got.time_ns == want.time_ns);
      REQUIRE(got.size_bytes == want.size_bytes);
      REQUIRE(got.object_bytes == want.object_bytes);
      REQUIRE(got.next == want.next);
      REQUIRE(got.ttl_seconds == want.ttl_seconds);
      REQUIRE(got.object == want.object);
    }
  }
  CHECK(at == put.size());
  std::filesystem::remove_all(directory);
}

TEST_CASE("Where the spool finds no room, one line says so", "[sim][spool]") {
  const std::string trace = (std::filesystem::temp_directory_path() /
                             ("encore_spool_" + std::to_string(::getpid()) + ".csv.zst"))
                                .string();
  REQUIRE(run("generate zipf --requests 20000 --no-timing -o " + trace).exit_code == 0);
  const std::string line = "replay --cache-size 10% --eviction lru " + trace;
  const auto refused = [&](const char* why) {
    const Ran ran = run(line);
    CHECK(ran.exit_code == 2);
    CHECK(ran.out.empty());
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    CHECK(ran.err.find("spool") != std::string::npos);
    CHECK(ran.err.find(why) != std::string::npos);
  };
  {
    const TemporaryDirectoryIs nowhere("/nonexistent");
    refused("No such file or directory");
  }
  {
    const FilesAreAtMost limit(100000);
    refused("File too large");
  }
  CHECK(run(line).exit_code == 0);
  std::filesystem::remove(trace);
}

}  // namespace encore::sim

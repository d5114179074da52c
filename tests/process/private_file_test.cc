#include "proxy/process/private_file.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

// Files of this process are no longer than this meanwhile, as if the disk were full.
class FileLengthLimit {
 public:
  explicit FileLengthLimit(rlim_t bytes) : signal_before_(std::signal(SIGXFSZ, SIG_IGN)) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit limit{bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileLengthLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_before_);
  }
  FileLengthLimit(const FileLengthLimit&) = delete;
  FileLengthLimit& operator=(const FileLengthLimit&) = delete;

 private:
  rlimit before_{};
  void (*signal_before_)(int);
};

TEST_CASE("a part that a full disk took is no part of what is appended later", "[server]") {
  const std::string path =
      std::filesystem::temp_directory_path() / ("encore-append-" + std::to_string(::getpid()));
  REQUIRE(append_private_file(path, "first "));
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0600U);
  {
    const FileLengthLimit limit(10);
    const auto appended = append_private_file(path, "second ");
    REQUIRE_FALSE(appended);
    CHECK(appended.error().message.contains(path));
  }
  REQUIRE(append_private_file(path, "third"));
  const auto text = read_private_file(path);
  REQUIRE(text);
  CHECK(*text == "first third");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace encore::server

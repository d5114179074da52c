// Listening sockets on files, and what is done with a file that is there already.
#include "proxy/net/listening.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "proxy/net/socket_options.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace encore::net {
namespace {

namespace fs = std::filesystem;

bool connects(const std::string& path) {
  const Socket client(::socket(AF_UNIX, SOCK_STREAM, 0));
  const auto address = unix_address(path);
  REQUIRE(address);
  return ::connect(client.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) ==
         0;
}

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST_CASE("a socket's file has its permissions, and goes with it", "[net][unix]") {
  const server::TemporaryDirectory directory;
  const std::string path = directory / "s";
  {
    auto opened = open_unix_listening(path, 0640);
    REQUIRE(opened);
    CHECK(connects(path));
    struct stat status{};
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0640);
    CHECK(files_in(directory.path()) == 1);
    CHECK(unix_listener(path) == ::getpid());
    CHECK(opened->file.set_mode(0600));
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0600);
    const auto second = open_unix_listening(path, 0640);
    REQUIRE_FALSE(second);
    CHECK(second.error().message == "cannot listen on unix:" + path + ": Address already in use");
    CHECK_FALSE(check_unix_unused(path));
    CHECK(connects(path));
  }
  CHECK(files_in(directory.path()) == 0);
  CHECK_FALSE(unix_listener(path));
}

TEST_CASE("a file on which nobody listens is replaced", "[net][unix]") {
  const server::TemporaryDirectory directory;
  const std::string path = directory / "s";
  {
    const Socket stale(::socket(AF_UNIX, SOCK_STREAM, 0));
    const auto address = unix_address(path);
    REQUIRE(::bind(stale.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) ==
            0);
  }
  REQUIRE(fs::exists(path));
  CHECK(check_unix_unused(path));
  const auto opened = open_unix_listening(path, 0600);
  REQUIRE(opened);
  CHECK(connects(path));
}

TEST_CASE("what is no socket is left alone", "[net][unix]") {
  const server::TemporaryDirectory directory;
  const std::string path = directory / "s";
  if (GENERATE(true, false)) {
    std::ofstream(path) << "precious";
  } else {
    fs::create_symlink("elsewhere", path);
  }
  CHECK_FALSE(open_unix_listening(path, 0600));
  CHECK_FALSE(check_unix_unused(path));
  CHECK(fs::symlink_status(path).type() != fs::file_type::socket);
  CHECK(files_in(directory.path()) == 1);
}

TEST_CASE("a file that another has made meanwhile is left alone", "[net][unix]") {
  const server::TemporaryDirectory directory;
  const std::string path = directory / "s";
  auto made = open_unix_listening(path, 0600);
  REQUIRE(made);
  auto first = std::make_unique<UnixListening>(std::move(*made));
  fs::remove(path);
  const auto second = open_unix_listening(path, 0600);
  REQUIRE(second);
  first.reset();
  CHECK(connects(path));
}

TEST_CASE("a folder that is not there is a fault", "[net][unix]") {
  const server::TemporaryDirectory directory;
  const std::string path = directory / "none/s";
  const auto opened = open_unix_listening(path, 0600);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().message == "cannot listen on unix:" + path + ": No such file or directory");
  CHECK_FALSE(check_unix_unused(path));
}

TEST_CASE("a name is as long as the system takes it, and no longer", "[net][unix]") {
  CHECK(unix_address(std::string(107, 'x')));
  CHECK_FALSE(unix_address(std::string(108, 'x')));
}

}  // namespace
}  // namespace encore::net

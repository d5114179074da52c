#include "proxy/process/state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "proxy/net/socket.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

TEST_CASE("a new state directory is private and empty", "[server][state]") {
  const TemporaryDirectory place;
  const auto state = StateDirectory::open(place / "a/b");
  REQUIRE(state.has_value());
  struct stat status{};
  REQUIRE(::stat((place / "a/b").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0700);
  const auto seed = state->load_seed();
  REQUIRE(seed.has_value());
  CHECK_FALSE(seed->has_value());
  const auto admission = state->load_admission();
  REQUIRE(admission.has_value());
  CHECK_FALSE(admission->has_value());
}

TEST_CASE("what was saved is loaded, to the byte, and replaces what was there", "[server][state]") {
  const TemporaryDirectory place;
  const auto state = StateDirectory::open(place.path());
  REQUIRE(state.has_value());
  const auto seed = random_seed();
  REQUIRE(seed.has_value());
  REQUIRE(state->save_seed(*seed).has_value());
  const auto loaded = state->load_seed();
  REQUIRE(loaded.has_value());
  REQUIRE(loaded->has_value());
  CHECK(filter::to_hex(**loaded) == filter::to_hex(*seed));
  for (const std::string& bytes :
       {std::string(100'000, '\0'), std::string("short"), std::string()}) {
    REQUIRE(state->save_admission(bytes).has_value());
    const auto again = state->load_admission();
    REQUIRE(again.has_value());
    REQUIRE(again->has_value());
    CHECK(**again == bytes);
  }
  // No half-written file is left next to them.
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(place.path())) {
    ++files;
  }
  CHECK(files == 3);  // and the lock
}

TEST_CASE("files of the state are for their owner alone", "[server][state]") {
  const TemporaryDirectory place;
  const auto state = StateDirectory::open(place.path());
  REQUIRE(state->save_seed({}).has_value());
  struct stat status{};
  REQUIRE(::stat((place / "seed").c_str(), &status) == 0);
  CHECK((status.st_mode & 077U) == 0);
}

TEST_CASE("a file of another user is not believed, whatever is in it", "[server][state]") {
  const TemporaryDirectory place;
  const auto state = StateDirectory::open(place.path());
  REQUIRE(state->save_seed({1, 2}).has_value());
  REQUIRE(state->save_admission("bytes").has_value());
  if (::chown((place / "seed").c_str(), 12345, 12345) != 0) {
    WARN("only root can make a file another's");
    return;
  }
  REQUIRE(::chown((place / "admission").c_str(), 12345, 12345) == 0);
  for (const std::string& message :
       {state->load_seed().error().message, state->load_admission().error().message}) {
    CHECK(message.find("belongs to user 12345") != std::string::npos);
  }
  CHECK_FALSE(StateDirectory::check(place.path()).has_value());
}

TEST_CASE("a file that others could read is closed to them", "[server][state]") {
  const TemporaryDirectory place;
  const auto state = StateDirectory::open(place.path());
  REQUIRE(state->save_seed({1, 2}).has_value());
  REQUIRE(::chmod((place / "seed").c_str(), 0644) == 0);
  const auto seed = state->load_seed();
  REQUIRE(seed.has_value());
  CHECK(seed->has_value());
  struct stat status{};
  REQUIRE(::stat((place / "seed").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0600);
}

TEST_CASE("what lies in the place of a file is neither followed nor written into nor waited for",
          "[server][state]") {
  const TemporaryDirectory place;
  const auto state = StateDirectory::open(place.path());
  write_text(place / "elsewhere", "0123456789abcdef0123456789abcdef");
  for (const char* name : {"seed", "seed.new", "admission.new"}) {
    std::filesystem::create_symlink(place / "elsewhere", place / name);
  }
  CHECK_FALSE(state->load_seed().has_value());
  REQUIRE(state->save_seed({1, 2}).has_value());
  REQUIRE(state->save_admission("bytes").has_value());
  CHECK(std::filesystem::file_size(place / "elsewhere") == 32);
  CHECK(filter::to_hex(**state->load_seed()) == filter::to_hex({1, 2}));

  // Somebody who waits with an open file for a secret to be written into it gets none.
  write_text(place / "admission.new", "");
  std::filesystem::create_hard_link(place / "admission.new", place / "kept");
  REQUIRE(state->save_admission("secret").has_value());
  CHECK(std::filesystem::file_size(place / "kept") == 0);

  std::filesystem::remove(place / "seed");
  REQUIRE(::mkfifo((place / "seed").c_str(), 0600) == 0);
  const auto pipe = state->load_seed();
  REQUIRE_FALSE(pipe.has_value());
  CHECK(pipe.error().message.find("not a regular file") != std::string::npos);
}

TEST_CASE("a directory has one user at a time", "[server][state]") {
  const TemporaryDirectory place;
  {
    const auto first = StateDirectory::open(place.path());
    REQUIRE(first.has_value());
    const auto second = StateDirectory::open(place.path());
    REQUIRE_FALSE(second.has_value());
    CHECK(second.error().message.find(place.path()) != std::string::npos);
    CHECK(second.error().message.find("in use by another") != std::string::npos);
    CHECK(second.error().message.find(std::to_string(::getpid())) != std::string::npos);
    CHECK(StateDirectory::is_taken(place.path()));
  }
  CHECK_FALSE(StateDirectory::is_taken(place.path()));
  CHECK(StateDirectory::open(place.path()).has_value());
}

TEST_CASE("who may read a directory cannot take it", "[server][state]") {
  const TemporaryDirectory place;
  REQUIRE(::chmod(place.path().c_str(), 0755) == 0);
  // As any user of the machine can.
  const net::Socket other(::open(place.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(other.get(), LOCK_EX | LOCK_NB) == 0);
  CHECK_FALSE(StateDirectory::is_taken(place.path()));
  const auto state = StateDirectory::open(place.path());
  REQUIRE(state.has_value());
  CHECK(StateDirectory::is_taken(place.path()));
  struct stat status{};
  REQUIRE(::stat((place / "lock").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0600);
}

TEST_CASE("a lock that another user has laid there is not waited for", "[server][state]") {
  const TemporaryDirectory place;
  write_text(place / "lock", "");
  if (::chown((place / "lock").c_str(), 12345, 12345) != 0) {
    WARN("only root can make a file another's");
    return;
  }
  const auto state = StateDirectory::open(place.path());
  REQUIRE_FALSE(state.has_value());
  CHECK(state.error().message.find("belongs to user 12345") != std::string::npos);
}

TEST_CASE("what is checked is what opening would find, and nothing is made", "[server][state]") {
  const TemporaryDirectory place;
  CHECK(StateDirectory::check(place.path()).has_value());
  CHECK(StateDirectory::check(place / "a/b/c").has_value());
  CHECK_FALSE(std::filesystem::exists(place / "a"));
  write_text(place / "file", "");
  CHECK_FALSE(StateDirectory::check(place / "file").has_value());
  CHECK_FALSE(StateDirectory::check(place / "file/state").has_value());
  write_text(place / "seed", "damaged");
  CHECK_FALSE(StateDirectory::check(place.path()).has_value());
}

TEST_CASE("a damaged seed is an error that names the file", "[server][state]") {
  const TemporaryDirectory place;
  const auto state = StateDirectory::open(place.path());
  for (const std::string& text : {std::string("xyz\n"), std::string(), std::string("0123"),
                                  std::string(33, 'a'), std::string("\0\0\0\0", 4)}) {
    write_text(place / "seed", text);
    const auto seed = state->load_seed();
    REQUIRE_FALSE(seed.has_value());
    CHECK(seed.error().message.find(place / "seed") != std::string::npos);
  }
}

TEST_CASE("a place that cannot be used is an error that names it", "[server][state]") {
  const TemporaryDirectory place;
  write_text(place / "file", "");
  const auto under_file = StateDirectory::open(place / "file/state");
  REQUIRE_FALSE(under_file.has_value());
  CHECK(under_file.error().message.find(place / "file/state") != std::string::npos);

  const auto state = StateDirectory::open(place / "gone");
  REQUIRE(state.has_value());
  std::filesystem::remove_all(place / "gone");
  const auto saved = state->save_admission("bytes");
  REQUIRE_FALSE(saved.has_value());
  CHECK(saved.error().message.find(place / "gone") != std::string::npos);
}

TEST_CASE("a save that fails leaves what was saved before", "[server][state]") {
  const TemporaryDirectory place;
  const auto state = StateDirectory::open(place.path());
  REQUIRE(state->save_admission("before").has_value());
  std::filesystem::create_directory(place / "admission.new");  // in the way of the new file
  CHECK_FALSE(state->save_admission("after").has_value());
  const auto kept = state->load_admission();
  REQUIRE(kept.has_value());
  CHECK(**kept == "before");
}

TEST_CASE("random seeds differ", "[server][state]") {
  CHECK(filter::to_hex(*random_seed()) != filter::to_hex(*random_seed()));
}

}  // namespace
}  // namespace encore::server

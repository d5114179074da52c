#include "proxy/server/state.h"

#include <sys/stat.h>

#include <string>

#include "tests/catch.h"
#include "tests/server/temporary_directory.h"

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
  // No half-written file is left beside them.
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(place.path())) {
    ++files;
  }
  CHECK(files == 2);
}

TEST_CASE("files of the state are for their owner alone", "[server][state]") {
  const TemporaryDirectory place;
  const auto state = StateDirectory::open(place.path());
  REQUIRE(state->save_seed({}).has_value());
  struct stat status{};
  REQUIRE(::stat((place / "seed").c_str(), &status) == 0);
  CHECK((status.st_mode & 077U) == 0);
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

#include "base/cli/output_file.h"

#include <sys/stat.h>

#include <filesystem>

#include "tests/temporary_directory.h"

namespace encore {
namespace {

namespace fs = std::filesystem;
using server::read_text;
using server::TemporaryDirectory;
using server::write_text;

std::size_t files_in(const TemporaryDirectory& directory) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory.path()), {}));
}

}  // namespace

TEST_CASE("A file is replaced as a whole", "[output]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  REQUIRE(replace_file(file, "first").has_value());
  CHECK(read_text(file) == "first");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  CHECK(static_cast<mode_t>(fs::status(file).permissions()) == (0666 & ~mask));
  fs::permissions(file, fs::perms(0640));
  REQUIRE(replace_file(file, "").has_value());
  CHECK(read_text(file).empty());
  CHECK(static_cast<mode_t>(fs::status(file).permissions()) == 0640);
  CHECK(files_in(directory) == 1);
}

TEST_CASE("Who has the old file open keeps it", "[output]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "f";
  write_text(file, "old");
  std::ifstream reader(file);
  REQUIRE(replace_file(file, "new and longer").has_value());
  std::string text;
  reader >> text;
  CHECK(text == "old");
}

TEST_CASE("A link stays one, and leads to what was written", "[output]") {
  const TemporaryDirectory directory;
  write_text(directory / "f", "old");
  fs::create_symlink("f", directory / "link");
  REQUIRE(replace_file(directory / "link", "new").has_value());
  CHECK(fs::is_symlink(directory / "link"));
  CHECK(read_text(directory / "f") == "new");
}

TEST_CASE("What cannot be written is an error that names it, and leaves nothing", "[output]") {
  const TemporaryDirectory directory;
  CHECK(replace_file(directory / "none/f", "x").error().message ==
        "cannot write " + (directory / "none/f") + ": No such file or directory");
  CHECK(replace_file("/dev/full", "x").error().message ==
        "cannot write /dev/full: No space left on device");
  CHECK(replace_file(directory.path(), "x").error().message.ends_with("Is a directory"));
  REQUIRE(replace_file("/dev/null", "x").has_value());
  CHECK(fs::is_character_file("/dev/null"));
  CHECK(files_in(directory) == 0);
}

}  // namespace encore

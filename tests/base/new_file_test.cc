#include "base/new_file.h"

#include <cerrno>
#include <filesystem>
#include <string>

#include "tests/catch.h"
#include "tests/names_seen.h"
#include "tests/temporary_directory.h"

namespace encore {
namespace {

using server::read_text;
using server::TemporaryDirectory;
using server::write_text;

TEST_CASE("whether a file could be made is known without making it", "[base][files]") {
  const TemporaryDirectory place;
  const NamesSeen seen(place / "");
  CHECK(check_new_file(place / "file") == 0);
  CHECK_FALSE(seen.has("file"));
  CHECK(std::filesystem::is_empty(place / ""));
  write_text(place / "file", "there");
  CHECK(check_new_file(place / "file") == EEXIST);
  CHECK(read_text(place / "file") == "there");
  CHECK(check_new_file(place / "none/file") == ENOENT);
  CHECK(check_new_file(place / "file/file") == ENOTDIR);
  CHECK(check_new_file(place / std::string(300, 'n')) == ENAMETOOLONG);
  CHECK(check_new_file("/proc/file") != 0);
}

TEST_CASE("what is to be done about a directory that is missing is said", "[base][files]") {
  const TemporaryDirectory place;
  CHECK(why_no_new_file(place / "none/a/file", ENOENT) ==
        "its directory does not exist; make it with: mkdir -p " + place / "none/a");
  CHECK(why_no_new_file(place / "file", ENOENT) == "No such file or directory");
  CHECK(why_no_new_file(place / "none/file", EACCES) == "Permission denied");
}

}  // namespace
}  // namespace encore

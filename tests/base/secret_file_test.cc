#include "base/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace encore {
namespace {

constexpr SecretRules kHashes{.others_read = OthersRead::kTold};

class SecretFile {
 public:
  explicit SecretFile(mode_t mode) {
    const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    REQUIRE(::write(file, "secret", 6) == 6);
    ::close(file);
    REQUIRE(::chmod(path_.c_str(), mode) == 0);
  }
  const std::string& path() const { return path_; }
  std::string in(const std::string& name) const { return directory_ / name; }

 private:
  server::TemporaryDirectory directory_;
  std::string path_ = directory_ / "file";
};

}  // namespace

TEST_CASE("a secret that its group or others can write is refused with the mode to set",
          "[base][secret]") {
  for (const mode_t mode : {0620U, 0602U, 0660U, 0666U, 0622U, 0777U}) {
    CAPTURE(mode);
    const SecretFile file(mode);
    for (const OthersRead others :
         {OthersRead::kRefused, OthersRead::kTold, OthersRead::kAllowed}) {
      for (const SecretOwner owner :
           {SecretOwner::kThisUserOrRoot, SecretOwner::kThisUser, SecretOwner::kAnybody}) {
        const auto read = read_secret(file.path(), 100, {.owner = owner, .others_read = others});
        REQUIRE_FALSE(read);
        CHECK(read.error().message.ends_with("run: chmod 600 " + file.path()));
      }
    }
  }
}

TEST_CASE("a secret that others can read is refused, and hashes of secrets are told of",
          "[base][secret]") {
  for (const mode_t mode : {0644U, 0604U, 0601U}) {
    CAPTURE(mode);
    const SecretFile file(mode);
    CHECK_FALSE(read_secret(file.path(), 100, {}));
    const auto hashes = read_secret(file.path(), 100, kHashes);
    REQUIRE(hashes);
    CHECK(hashes->text == "secret");
    CHECK(hashes->warning.ends_with("run: chmod 600 " + file.path()));
    CHECK(read_secret(file.path(), 100, {.others_read = OthersRead::kAllowed})->warning.empty());
  }
  for (const mode_t mode : {0600U, 0640U, 0400U, 0440U}) {
    CAPTURE(mode);
    const SecretFile file(mode);
    CHECK(read_secret_file(file.path(), 6) == "secret");
    CHECK(read_secret(file.path(), 100, kHashes)->warning.empty());
    CHECK_FALSE(read_secret_file(file.path(), 5));
  }
}

TEST_CASE("a secret belongs to this user or to root, and so does a link to it", "[base][secret]") {
  const SecretFile file(0600);
  const std::string link = file.in("link");
  std::filesystem::create_symlink(file.path(), link);
  CHECK(read_secret_file(link, 100) == "secret");
  CHECK_FALSE(read_secret_file(file.in("none"), 100));
  CHECK(read_secret_file(file.in(""), 100).error().message == "not a regular file");
  if (::lchown(link.c_str(), 12345, 12345) != 0) {
    WARN("only root can make a file another's");
    return;
  }
  CHECK_FALSE(read_secret_file(link, 100));
  CHECK(read_secret_file(link, 100, SecretOwner::kAnybody) == "secret");
  REQUIRE(::chown(file.path().c_str(), 12345, 12345) == 0);
  CHECK_FALSE(read_secret_file(file.path(), 100));
  CHECK_FALSE(read_secret(file.path(), 100, kHashes));
}

}  // namespace encore

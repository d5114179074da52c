#include "base/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace encore {

namespace {

std::string directory_of(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path();
  return directory.empty() ? "." : directory;
}

}  // namespace

std::string why_no_new_file(const std::string& path, int os_error) {
  std::error_code ignored;
  const std::string directory = directory_of(path);
  if (os_error == ENOENT && !std::filesystem::exists(directory, ignored)) {
    return "its directory does not exist; make it with: mkdir -p " + directory;
  }
  return std::generic_category().message(os_error);
}

int check_new_file(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0) return EEXIST;
  if (errno != ENOENT) return errno;  // also a name that is too long
  const std::string directory = directory_of(path);
  const int nameless = ::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (nameless >= 0) {
    ::close(nameless);
    return 0;
  }
  // Some file systems have no files without a name.
  const bool is_unknown = errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL;
  if (!is_unknown) return errno;
  std::string name = directory + "/.encore-check-XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named < 0) return errno;
  ::close(named);
  ::unlink(name.c_str());
  return 0;
}

}  // namespace encore

#include "proxy/net/file_mark.h"

#include <sys/stat.h>

#include <cerrno>
#include <ctime>

namespace encore::net {
namespace {

std::int64_t since_1970(const timespec& time) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return std::int64_t{time.tv_sec} * kSecond + time.tv_nsec;
}

}  // namespace

FileMark FileMark::of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return {.exists = errno != ENOENT && errno != ENOTDIR};
  }
  return {.exists = true,
          .device = status.st_dev,
          .inode = status.st_ino,
          .bytes = status.st_size,
          .mode = status.st_mode,
          .written = since_1970(status.st_mtim),
          .changed = since_1970(status.st_ctim)};
}

}  // namespace encore::net

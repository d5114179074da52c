#include "base/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace encore {
namespace {

Result<void> check_file(int file, SecretOwner owner) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return fail("not a regular file");
  // A group may be given it to read: so root gives it to who runs this.
  constexpr mode_t kForeign = 027;
  const bool ours = status.st_uid == ::geteuid() || status.st_uid == 0;
  if ((status.st_mode & kForeign) != 0) {
    return fail(
        "others can read or write it, accepted: a file of this user or root, mode 0600 or "
        "0640");
  }
  if (!ours && owner == SecretOwner::kThisUserOrRoot) {
    return fail("it is another user's, accepted: a file of this user or root, mode 0600 or 0640");
  }
  return {};
}

Result<std::string> read_all(int file, std::size_t bytes_max) {
  std::string bytes(bytes_max + 1, '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(std::strerror(errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  if (done > bytes_max) return fail("larger than " + std::to_string(bytes_max) + " bytes");
  bytes.resize(done);
  return bytes;
}

}  // namespace

Result<std::string> read_secret_file(const std::string& path, std::size_t bytes_max,
                                     SecretOwner owner) {
  // Without waiting, for it may be a pipe.
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return fail(std::strerror(errno));
  Result<std::string> read;
  if (auto good = check_file(file, owner); good) {
    read = read_all(file, bytes_max);
  } else {
    read = std::unexpected(good.error());
  }
  ::close(file);
  return read;
}

}  // namespace encore

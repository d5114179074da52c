#include "proxy/net/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "proxy/net/socket.h"

namespace encore::net {
namespace {

Result<void> check_owner(const Socket& file) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return fail("not a regular file");
  // A group may be given it to read: so root gives it to who runs this.
  constexpr mode_t kForeign = 027;
  const bool ours = status.st_uid == ::geteuid() || status.st_uid == 0;
  if ((status.st_mode & kForeign) != 0) {
    return fail(
        "others can read or write it, accepted: a file of this user or root, mode 0600 or "
        "0640");
  }
  if (!ours) {
    return fail("it is another user's, accepted: a file of this user or root, mode 0600 or 0640");
  }
  return {};
}

}  // namespace

Result<std::string> read_secret_file(const std::string& path, std::size_t bytes_max) {
  // Without waiting, for it may be a pipe.
  const Socket file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file) return fail(std::strerror(errno));
  if (auto ours = check_owner(file); !ours) return std::unexpected(ours.error());
  std::string bytes(bytes_max + 1, '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(std::strerror(errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  if (done > bytes_max) return fail("larger than " + std::to_string(bytes_max) + " bytes");
  bytes.resize(done);
  return bytes;
}

}  // namespace encore::net

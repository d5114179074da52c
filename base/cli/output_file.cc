#include "base/cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace encore {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

// State for the handler: the file that is written next to its final place.
std::array<char, PATH_MAX> beside;

extern "C" void remove_beside(int signal) {
  ::unlink(beside.data());
  ::raise(signal);  // by its default, to which SA_RESETHAND has set it back
}

// As long as it lives an interrupt leaves nothing behind.
class Watched {
 public:
  explicit Watched(const std::string& path) {
    path.copy(beside.data(), beside.size() - 1);
    beside[path.size()] = '\0';
    struct sigaction action{};
    action.sa_handler = remove_beside;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler == SIG_DFL) {
        sigaction(kSignals[i], &action, nullptr);
      }
    }
  }
  ~Watched() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], &before_[i], nullptr);
    }
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  std::array<struct sigaction, kSignals.size()> before_{};
};

std::unexpected<Error> failed(const std::string& path) {
  return fail("cannot write " + path + ": " + std::strerror(errno));
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Result<void> write_into(const std::string& path, std::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) {
    return failed(path);
  }
  const bool written = write_all(fd, bytes);
  const int error = errno;
  const bool closed = ::close(fd) == 0;
  if (!written || !closed) {
    errno = written ? errno : error;
    return failed(path);
  }
  return {};
}

// Returns the target of links; the path itself if nothing is there yet.
std::string resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         std::free);
  return real ? std::string(real.get()) : path;
}

mode_t usual_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

Result<void> replace_file(const std::string& path, std::string_view bytes) {
  struct stat there{};
  const bool exists = ::stat(path.c_str(), &there) == 0;
  if (exists && !S_ISREG(there.st_mode)) {
    return write_into(path, bytes);
  }
  const std::string place = resolved(path);
  std::string name = place + ".XXXXXX";
  if (name.size() >= beside.size()) {
    errno = ENAMETOOLONG;
    return failed(path);
  }
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) {
    return failed(path);
  }
  const Watched watched(name);
  const bool written = ::fchmod(fd, exists ? there.st_mode & 07777U : usual_mode()) == 0 &&
                       write_all(fd, bytes) && ::fsync(fd) == 0;
  const int error = errno;
  const bool closed = ::close(fd) == 0;
  if (written && closed && ::rename(name.c_str(), place.c_str()) == 0) {
    return {};
  }
  const int why = written ? errno : error;
  ::unlink(name.c_str());
  errno = why;
  return failed(path);
}

}  // namespace encore

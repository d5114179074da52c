#include "proxy/net/listening.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "proxy/net/socket_options.h"

namespace encore::net {
namespace {

std::unexpected<Error> failed(const std::string& path, int os_error) {
  return fail("cannot listen on unix:" + path + ": " + std::generic_category().message(os_error));
}

Socket open_unix() {
  return Socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

enum class SocketPathState { kNothing, kStale, kInUse, kNoSocket };

// Returns the kind of file at that path.
SocketPathState inspect_path(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return SocketPathState::kNothing;
  if (!S_ISSOCK(status.st_mode)) return SocketPathState::kNoSocket;
  const Socket probe = open_unix();
  const auto address = unix_address(path);
  if (!probe || !address) return SocketPathState::kInUse;
  const auto* any = reinterpret_cast<const sockaddr*>(&*address);
  if (::connect(probe.get(), any, sizeof *address) == 0) return SocketPathState::kInUse;
  return errno == ECONNREFUSED ? SocketPathState::kStale : SocketPathState::kInUse;
}

Result<void> refuse(const std::string& path) {
  switch (inspect_path(path)) {
    case SocketPathState::kNothing:
    case SocketPathState::kStale:
      return {};
    case SocketPathState::kInUse:
      return failed(path, EADDRINUSE);
    case SocketPathState::kNoSocket:
      return fail("cannot listen on unix:" + path + ": the file exists and is not a socket");
  }
  return {};
}

// A socket that is bound to a file next to `of`, which is removed with it unless its name is
// cleared.
struct BoundFile {
  explicit BoundFile(const std::string& of)
      : socket(open_unix()), path(of + "." + std::to_string(::getpid() % 100000)) {
    if (!socket) {
      os_error = errno;
      path.clear();
      return;
    }
    const auto address = unix_address(path);
    if (!address) {
      os_error = ENAMETOOLONG;
      path.clear();
      return;
    }
    ::unlink(path.c_str());
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
      os_error = errno;
      path.clear();
    }
  }
  BoundFile(const BoundFile&) = delete;
  BoundFile& operator=(const BoundFile&) = delete;
  ~BoundFile() {
    if (!path.empty()) ::unlink(path.c_str());
  }

  Socket socket;
  std::string path;  // empty: none
  int os_error = 0;  // why there is none
};

}  // namespace

Result<Socket> open_listening(const Address& address) {
  return listen_on(address, kListenBacklog, SharePort::kYes);
}

Result<Socket> open_listening_alone(const Address& address) {
  constexpr int kBacklog = 128;
  return listen_on(address, kBacklog, SharePort::kNo);
}

Address listening_address(const Socket& socket) { return bound_address(socket); }

std::string unix_path_of(const Socket& socket) {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const bool is_unix = ::getsockname(socket.get(), any, &size) == 0 &&
                       address.sun_family == AF_UNIX && size > offsetof(sockaddr_un, sun_path);
  if (!is_unix) return {};
  return {address.sun_path, ::strnlen(address.sun_path, size - offsetof(sockaddr_un, sun_path))};
}

Socket duplicate(const Socket& socket) { return Socket(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0)); }

SocketFile::SocketFile(SocketFile&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      device_(other.device_),
      inode_(other.inode_),
      is_ours_(other.is_ours_) {}

SocketFile::~SocketFile() {
  if (path_.empty() || !is_ours_) return;
  struct stat status{};
  if (::lstat(path_.c_str(), &status) != 0) return;
  if (status.st_dev == device_ && status.st_ino == inode_) ::unlink(path_.c_str());
}

Result<SocketFile> SocketFile::of(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return failed(path, errno);
  if (!S_ISSOCK(status.st_mode)) return failed(path, ENOTSOCK);
  SocketFile file(path, status.st_dev, status.st_ino);
  file.leave();
  return file;
}

Result<void> SocketFile::set_mode(unsigned mode) const {
  if (::chmod(path_.c_str(), mode) != 0) return failed(path_, errno);
  return {};
}

// It is made under a name of its own, and takes the place of the other when all about it is right.
Result<UnixListening> open_unix_listening(const std::string& path, unsigned mode) {
  if (auto free = refuse(path); !free) return std::unexpected(free.error());
  BoundFile made(path);
  if (made.os_error != 0) return failed(path, made.os_error);
  struct stat status{};
  const bool done = ::chmod(made.path.c_str(), mode) == 0 &&
                    ::lstat(made.path.c_str(), &status) == 0 &&
                    ::listen(made.socket.get(), kListenBacklog) == 0 &&
                    std::rename(made.path.c_str(), path.c_str()) == 0;
  if (!done) return failed(path, errno);
  made.path.clear();
  return UnixListening{.socket = std::move(made.socket),
                       .file = SocketFile(path, status.st_dev, status.st_ino)};
}

Result<void> check_unix_unused(const std::string& path) {
  if (auto free = refuse(path); !free) return free;
  const BoundFile made(path);
  return made.os_error == 0 ? Result<void>() : failed(path, made.os_error);
}

std::optional<pid_t> unix_listener(const std::string& path) {
  const Socket probe = open_unix();
  const auto address = unix_address(path);
  if (!probe || !address) return std::nullopt;
  const auto* any = reinterpret_cast<const sockaddr*>(&*address);
  if (::connect(probe.get(), any, sizeof *address) != 0) return std::nullopt;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer.pid;
}

}  // namespace encore::net

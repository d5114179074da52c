#include "proxy/upgrade/notify.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "proxy/upgrade/passed_descriptors.h"

namespace encore::upgrade {
namespace {

constexpr std::size_t kNoticeDescriptorsMax = 250;

std::optional<std::uint64_t> number_in(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  std::uint64_t value = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, status] = std::from_chars(text, end, value);
  return status == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

// True if it is meant for this process, or for any.
bool is_for_us(const char* name) {
  const auto process = number_in(name);
  return std::getenv(name) == nullptr || process == static_cast<std::uint64_t>(::getpid());
}

// Sockets begin behind the standard descriptors (sd_listen_fds(3)).
std::vector<net::Socket> listen_sockets() {
  constexpr int kFirst = 3;
  constexpr std::uint64_t kMost = 4096;
  std::vector<net::Socket> sockets;
  const auto count = number_in("LISTEN_FDS");
  if (!count || *count > kMost || std::getenv("LISTEN_PID") == nullptr ||
      !is_for_us("LISTEN_PID")) {
    return sockets;
  }
  for (int each = kFirst; each < kFirst + static_cast<int>(*count); ++each) {
    const int flags = ::fcntl(each, F_GETFL);
    if (flags < 0) continue;
    ::fcntl(each, F_SETFD, FD_CLOEXEC);
    ::fcntl(each, F_SETFL, flags | O_NONBLOCK);
    int is_listening = 0;
    socklen_t size = sizeof is_listening;
    net::Socket socket(each);
    if (::getsockopt(each, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) == 0 &&
        is_listening != 0) {
      sockets.push_back(std::move(socket));
    }
  }
  return sockets;
}

}  // namespace

ServiceManager ServiceManager::of_environment() {
  const char* const address = std::getenv("NOTIFY_SOCKET");
  ServiceManager manager(address == nullptr ? "" : address);
  const auto microseconds = number_in("WATCHDOG_USEC");
  if (microseconds && *microseconds != 0 && is_for_us("WATCHDOG_PID")) {
    // Twice in the time after which it would act (sd_watchdog_enabled(3)).
    manager.watchdog_ = std::chrono::microseconds(*microseconds / 2);
  }
  manager.sockets_ = listen_sockets();
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
  return manager;
}

void ServiceManager::tell(std::string_view lines, const std::vector<int>& descriptors) const {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  // A name that begins with @ is none of a file.
  if (address_.empty() || address_.size() >= sizeof to.sun_path) return;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const net::Socket socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  iovec piece{const_cast<char*>(lines.data()), lines.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kNoticeDescriptorsMax * sizeof(int))> control{};
  msghdr head{};
  head.msg_name = &to;
  head.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  head.msg_iov = &piece;
  head.msg_iovlen = 1;
  carry(head, control, descriptors);
  (void)::sendmsg(socket.get(), &head, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace encore::upgrade

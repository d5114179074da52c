#include "proxy/upgrade/channel.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "proxy/upgrade/passed_descriptors.h"

namespace encore::upgrade {
namespace {

// For a peer that is starting: it reads between its steps, and a step is short.
constexpr Nanoseconds kSendPatience = std::chrono::seconds(10);

std::unexpected<Error> system_error(const std::string& what) {
  return fail(what + ": " + std::strerror(errno));
}

bool wait_for(int descriptor, short events, Nanoseconds time) {
  pollfd wanted{descriptor, events, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  int ready = 0;
  do {
    ready = ::poll(&wanted, 1, static_cast<int>(left));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

constexpr std::size_t kControlBytes = CMSG_SPACE(kDescriptorsMax * sizeof(int));

// Takes over whatever descriptors came: one that is not owned would stay open for ever.
std::vector<net::Socket> take_descriptors(msghdr& head) {
  std::vector<net::Socket> descriptors;
  for (cmsghdr* each = CMSG_FIRSTHDR(&head); each != nullptr; each = CMSG_NXTHDR(&head, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(each) + i * sizeof(int), sizeof descriptor);
      descriptors.emplace_back(descriptor);
    }
  }
  return descriptors;
}

}  // namespace

Result<std::pair<Channel, Channel>> Channel::pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    return system_error("no channel for an upgrade");
  }
  return std::pair(Channel(net::Socket(ends[0])), Channel(net::Socket(ends[1])));
}

Result<void> Channel::send(const Message& message, const std::vector<int>& descriptors) {
  std::string bytes = encode(message);
  ENCORE_CHECK(bytes.size() <= kMessageBytesMax, "what is large goes over in memory");
  iovec piece{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, kControlBytes> control{};
  msghdr head{};
  head.msg_iov = &piece;
  head.msg_iovlen = 1;
  carry(head, control, descriptors);
  for (;;) {
    if (::sendmsg(socket_.get(), &head, MSG_NOSIGNAL) >= 0) return {};
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return system_error("the other process of an upgrade");
    if (!wait_for(socket_.get(), POLLOUT, kSendPatience)) {
      return fail("the other process of an upgrade does not read");
    }
  }
}

std::expected<ReceivedMessage, Channel::Nothing> Channel::receive() {
  // One more byte than a message has shows that a packet is too long.
  std::string bytes(kMessageBytesMax + 1, '\0');
  iovec piece{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, kControlBytes> control{};
  msghdr head{};
  head.msg_iov = &piece;
  head.msg_iovlen = 1;
  head.msg_control = control.data();
  head.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket_.get(), &head, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return std::unexpected(errno == EAGAIN ? Nothing::kYet : Nothing::kEver);
  ReceivedMessage received{.message = {}, .descriptors = take_descriptors(head)};
  if (got == 0 && received.descriptors.empty()) return std::unexpected(Nothing::kEver);
  if ((head.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return std::unexpected(Nothing::kBroken);
  bytes.resize(static_cast<std::size_t>(got));
  auto message = decode(bytes);
  if (!message) return std::unexpected(Nothing::kBroken);
  received.message = std::move(*message);
  return received;
}

bool Channel::wait(Nanoseconds time) const { return wait_for(socket_.get(), POLLIN, time); }

Result<net::Socket> write_memory(std::string_view bytes) {
  net::Socket memory(::memfd_create("encore-upgrade", MFD_CLOEXEC));
  if (!memory) return system_error("no memory to hand over");
  while (!bytes.empty()) {
    const ssize_t put = ::write(memory.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return system_error("no memory to hand over");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return memory;
}

Result<std::string> read_memory(const net::Socket& memory, std::size_t bytes_max) {
  struct stat status{};
  if (::fstat(memory.get(), &status) != 0) return system_error("state that was handed over");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size > bytes_max) {
    return fail("state that was handed over has " + std::to_string(size) +
                " bytes, accepted: " + std::to_string(bytes_max));
  }
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < size;) {
    const ssize_t got =
        ::pread(memory.get(), bytes.data() + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail("state that was handed over cannot be read");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace encore::upgrade

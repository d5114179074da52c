#include "proxy/net/syscalls.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/sanitizers.h"

namespace encore::net {
namespace {

#if defined(ENCORE_ADDRESS_SANITIZER) || defined(ENCORE_THREAD_SANITIZER)
// The sanitizers check the bytes that pass through glibc's.
constexpr auto* recv_at_once = ::recv;
constexpr auto* send_at_once = ::send;
constexpr auto* sendmsg_at_once = ::sendmsg;
#else
// glibc's own wrappers of these three are points where a thread may be cancelled, and in a program
// of several threads each of their calls switches that on and off again. No thread is ever
// cancelled here; what has syscall() is the same call without the switch.
ssize_t recv_at_once(int descriptor, void* bytes, std::size_t size, int flags) {
  return ::syscall(SYS_recvfrom, descriptor, bytes, size, flags, nullptr, nullptr);
}

ssize_t send_at_once(int descriptor, const void* bytes, std::size_t size, int flags) {
  return ::syscall(SYS_sendto, descriptor, bytes, size, flags, nullptr, 0);
}

ssize_t sendmsg_at_once(int descriptor, const msghdr* message, int flags) {
  return ::syscall(SYS_sendmsg, descriptor, message, flags);
}
#endif

}  // namespace

Syscalls syscalls = {
    .recv = recv_at_once,
    .send = send_at_once,
    .sendmsg = sendmsg_at_once,
    .accept4 = ::accept4,
    .connect = ::connect,
    .socket = ::socket,
};

}  // namespace encore::net

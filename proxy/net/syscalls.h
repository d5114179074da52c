// The system calls that move a connection's bytes, behind a table, so that a test can fail the
// Nth of them. The program never changes the table; a test changes it while no loop runs.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>

namespace encore::net {

// Each has the contract of the call it is named after: -1 and errno on failure.
struct Syscalls {
  ssize_t (*recv)(int descriptor, void* bytes, std::size_t size, int flags);
  ssize_t (*send)(int descriptor, const void* bytes, std::size_t size, int flags);
  ssize_t (*sendmsg)(int descriptor, const msghdr* message, int flags);
  int (*accept4)(int descriptor, sockaddr* peer, socklen_t* size, int flags);
  int (*connect)(int descriptor, const sockaddr* address, socklen_t size);
  int (*socket)(int family, int type, int protocol);
};

// The system calls of net/. Global: reads of it are not synchronised.
extern Syscalls syscalls;

// True if the call may be made again: later, or now.
inline bool is_transient(int os_error) { return os_error == EAGAIN || os_error == EINTR; }

}  // namespace encore::net

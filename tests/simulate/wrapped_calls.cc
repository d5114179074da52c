// The system calls of everything that is linked into this program, by the linker's --wrap: those on
// simulated descriptors, and all that make one or tell the time, go to the current System. Without
// one they go to the real one, and so do calls on other descriptors (logs, files).
#include <fcntl.h>
#include <openssl/types.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <ctime>

#include "tests/simulate/system.h"

using encore::simulate::kFirstDescriptor;
using encore::simulate::Side;
using encore::simulate::System;

namespace {

bool is_simulated(int descriptor) { return descriptor >= kFirstDescriptor; }

// Names of the linker's are no names of ours.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

}  // namespace

extern "C" {

#define ENCORE_WRAP(result, name, parameters) \
  result __real_##name parameters;            \
  result __wrap_##name parameters;            \
  result __wrap_##name parameters

ENCORE_WRAP(int, socket, (int family, int type, int protocol)) {
  System* system = System::current();
  if (system == nullptr) return __real_socket(family, type, protocol);
  return system->socket(Side::kProxy, family, type);
}

ENCORE_WRAP(int, bind, (int descriptor, const sockaddr* address, socklen_t size)) {
  if (!is_simulated(descriptor)) return __real_bind(descriptor, address, size);
  return System::current()->bind(descriptor, address, size);
}

ENCORE_WRAP(int, listen, (int descriptor, int backlog)) {
  if (!is_simulated(descriptor)) return __real_listen(descriptor, backlog);
  return System::current()->listen(descriptor, backlog);
}

ENCORE_WRAP(int, connect, (int descriptor, const sockaddr* address, socklen_t size)) {
  if (!is_simulated(descriptor)) return __real_connect(descriptor, address, size);
  return System::current()->connect(descriptor, address, size);
}

ENCORE_WRAP(int, accept4, (int descriptor, sockaddr* peer, socklen_t* size, int flags)) {
  if (!is_simulated(descriptor)) return __real_accept4(descriptor, peer, size, flags);
  return System::current()->accept(Side::kProxy, descriptor, peer, size);
}

ENCORE_WRAP(ssize_t, recv, (int descriptor, void* bytes, size_t size, int flags)) {
  if (!is_simulated(descriptor)) return __real_recv(descriptor, bytes, size, flags);
  return System::current()->recv(descriptor, bytes, size, flags);
}

ENCORE_WRAP(ssize_t, send, (int descriptor, const void* bytes, size_t size, int flags)) {
  if (!is_simulated(descriptor)) return __real_send(descriptor, bytes, size, flags);
  const iovec part{.iov_base = const_cast<void*>(bytes), .iov_len = size};
  return System::current()->send(descriptor, std::span(&part, 1));
}

ENCORE_WRAP(ssize_t, sendmsg, (int descriptor, const msghdr* message, int flags)) {
  if (!is_simulated(descriptor)) return __real_sendmsg(descriptor, message, flags);
  return System::current()->send(descriptor, std::span(message->msg_iov, message->msg_iovlen));
}

ENCORE_WRAP(int, shutdown, (int descriptor, int how)) {
  if (!is_simulated(descriptor)) return __real_shutdown(descriptor, how);
  return System::current()->shutdown(descriptor, how);
}

ENCORE_WRAP(int, close, (int descriptor)) {
  if (!is_simulated(descriptor)) return __real_close(descriptor);
  return System::current()->close(descriptor);
}

ENCORE_WRAP(int, setsockopt,
            (int descriptor, int level, int option, const void* value, socklen_t size)) {
  if (!is_simulated(descriptor)) return __real_setsockopt(descriptor, level, option, value, size);
  return System::current()->setsockopt(descriptor, level, option, value, size);
}

ENCORE_WRAP(int, getsockopt,
            (int descriptor, int level, int option, void* value, socklen_t* size)) {
  if (!is_simulated(descriptor)) return __real_getsockopt(descriptor, level, option, value, size);
  return System::current()->getsockopt(descriptor, level, option, value, size);
}

ENCORE_WRAP(int, getsockname, (int descriptor, sockaddr* address, socklen_t* size)) {
  if (!is_simulated(descriptor)) return __real_getsockname(descriptor, address, size);
  return System::current()->getsockname(descriptor, address, size);
}

int __real_ioctl(int descriptor, unsigned long request, ...);
int __wrap_ioctl(int descriptor, unsigned long request, ...);
int __wrap_ioctl(int descriptor, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* value = va_arg(arguments, void*);
  va_end(arguments);
  if (!is_simulated(descriptor)) return __real_ioctl(descriptor, request, value);
  return System::current()->ioctl(descriptor, request, static_cast<int*>(value));
}

int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  System* system = System::current();
  if (system != nullptr && std::strcmp(path, "/dev/null") == 0) {
    return system->open_null(Side::kProxy);
  }
  return __real_open(path, flags, mode);
}

ENCORE_WRAP(int, eventfd, (unsigned int count, int flags)) {
  System* system = System::current();
  if (system == nullptr) return __real_eventfd(count, flags);
  return system->eventfd(Side::kProxy, count);
}

ENCORE_WRAP(ssize_t, read, (int descriptor, void* bytes, size_t size)) {
  if (!is_simulated(descriptor)) return __real_read(descriptor, bytes, size);
  return System::current()->read_eventfd(descriptor, static_cast<std::uint64_t*>(bytes));
}

ENCORE_WRAP(ssize_t, write, (int descriptor, const void* bytes, size_t size)) {
  if (!is_simulated(descriptor)) return __real_write(descriptor, bytes, size);
  return System::current()->write_eventfd(descriptor, *static_cast<const std::uint64_t*>(bytes));
}

ENCORE_WRAP(ssize_t, getrandom, (void* bytes, size_t size, unsigned int flags)) {
  System* system = System::current();
  if (system == nullptr) return __real_getrandom(bytes, size, flags);
  auto* out = static_cast<unsigned char*>(bytes);
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<unsigned char>(system->random());
  return static_cast<ssize_t>(size);
}

int __real_getrlimit(__rlimit_resource_t resource, rlimit* limit);
int __wrap_getrlimit(__rlimit_resource_t resource, rlimit* limit);
// No limit of the machine's decides a simulated run.
int __wrap_getrlimit(__rlimit_resource_t resource, rlimit* limit) {
  if (System::current() == nullptr) return __real_getrlimit(resource, limit);
  limit->rlim_cur = limit->rlim_max = RLIM_INFINITY;
  return 0;
}

ENCORE_WRAP(int, clock_gettime, (clockid_t clock, timespec* value)) {
  System* system = System::current();
  if (system == nullptr) return __real_clock_gettime(clock, value);
  const std::int64_t now = clock == CLOCK_REALTIME ? system->wall_now() : system->now();
  value->tv_sec = now / 1'000'000'000;
  value->tv_nsec = now % 1'000'000'000;
  return 0;
}

// OpenSSL asks the time itself, in a library that is not linked anew: it finds this one before the
// system's.
time_t time(time_t* into) noexcept {
  timespec now{};
  (void)__wrap_clock_gettime(CLOCK_REALTIME, &now);
  if (into != nullptr) *into = now.tv_sec;
  return now.tv_sec;
}

// The machine's authorities, 140 of them, for each worker and each reload: nothing simulated is
// known to them, and reading them took half of all time.
ENCORE_WRAP(int, SSL_CTX_set_default_verify_paths, (SSL_CTX * context)) {
  if (System::current() == nullptr) return __real_SSL_CTX_set_default_verify_paths(context);
  return 1;
}

}  // extern "C"

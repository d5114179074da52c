// Listening sockets before they have a loop: opened in one thread, given to a Listener in another.
// Any thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/error.h"
#include "proxy/net/address.h"
#include "proxy/net/socket.h"

namespace encore::net {

// Connections that may wait to be accepted.
inline constexpr int kListenBacklog = 4096;

// Shares its address with other sockets of this user (SO_REUSEPORT), each of which gets a part of
// the connections. Errors show the address.
Result<Socket> open_listening(const Address& address);
// The same for one who shares its address with nobody, and whose clients are few.
Result<Socket> open_listening_alone(const Address& address);
// Its own address, with the port that the kernel chose.
Address listening_address(const Socket& socket);
// The file that it is bound to; empty: none.
std::string unix_path_of(const Socket& socket);
// Duplicates the socket: a connection accepted from one copy is gone from all. None with errno.
Socket duplicate(const Socket& socket);

// The file of a Unix socket, removed when this ends, if it is still the one that was made. A value
// that is moved.
class SocketFile {
 public:
  SocketFile(std::string path, dev_t device, ino_t inode)
      : path_(std::move(path)), device_(device), inode_(inode) {}
  SocketFile(SocketFile&& other) noexcept;
  SocketFile& operator=(SocketFile&&) = delete;
  ~SocketFile();

  // The file of a socket that another process has opened, and removes until own() is called.
  // Errors show the file: it is not there.
  static Result<SocketFile> of(const std::string& path);

  // Errors show the file.
  Result<void> set_mode(unsigned mode) const;
  // It is this process' from now on, or another one's.
  void own() { is_ours_ = true; }
  void leave() { is_ours_ = false; }

 private:
  std::string path_;  // empty: none
  dev_t device_;
  ino_t inode_;
  bool is_ours_ = true;
};

struct UnixListening {
  Socket socket;
  SocketFile file;
};
// A file that is a socket on which nobody listens any more is replaced, and nothing else. It has
// its permissions before the first client can connect. Errors show the file.
Result<UnixListening> open_unix_listening(const std::string& path, unsigned mode);
// Whether that would find another who listens, a file that is no socket, or a folder in which
// nothing may be made. Makes nothing.
Result<void> check_unix_unused(const std::string& path);
// The process that listens there; nothing where nobody does.
std::optional<pid_t> unix_listener(const std::string& path);

}  // namespace encore::net

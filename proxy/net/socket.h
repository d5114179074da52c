// Socket: a descriptor with one owner. Move-only, thread-compatible.
#pragma once

#include <unistd.h>

#include <utility>

namespace encore::net {

class Socket {
 public:
  Socket() = default;
  // Takes the descriptor over; a negative one is "none".
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      reset();
      descriptor_ = other.release();
    }
    return *this;
  }
  ~Socket() { reset(); }

  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  // Gives the descriptor away.
  int release() { return std::exchange(descriptor_, -1); }
  // Closes it.
  void reset() {
    if (descriptor_ >= 0) ::close(release());
  }

 private:
  int descriptor_ = -1;
};

}  // namespace encore::net

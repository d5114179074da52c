// The names that come to be in a directory, as the kernel tells them (inotify).
#pragma once

#include <sys/inotify.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/catch.h"

namespace encore {

class NamesSeen {
 public:
  explicit NamesSeen(const std::string& directory)
      : watch_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    REQUIRE(watch_ >= 0);
    REQUIRE(::inotify_add_watch(watch_, directory.c_str(), IN_CREATE | IN_MOVED_TO) >= 0);
  }
  ~NamesSeen() { ::close(watch_); }
  NamesSeen(const NamesSeen&) = delete;
  NamesSeen& operator=(const NamesSeen&) = delete;

  // Whether one of this name was there since the last call, however shortly.
  bool has(const std::string& name) const {
    bool seen = false;
    alignas(inotify_event) char room[4096];
    for (ssize_t bytes = 0; (bytes = ::read(watch_, room, sizeof room)) > 0;) {
      for (ssize_t at = 0; at < bytes;) {
        inotify_event event{};
        std::memcpy(&event, room + at, sizeof event);
        seen = seen || name == room + at + sizeof event;
        at += static_cast<ssize_t>(sizeof event + event.len);
      }
    }
    return seen;
  }

 private:
  int watch_;
};

}  // namespace encore

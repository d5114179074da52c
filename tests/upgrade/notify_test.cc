#include "proxy/upgrade/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "proxy/upgrade/channel.h"
#include "tests/catch.h"

namespace encore::upgrade {
namespace {

// A service manager's socket.
struct Manager {
  explicit Manager(std::string name) : address(std::move(name)) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, address.data(), address.size());
    if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
    REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&to), size) == 0);
  }
  ~Manager() {
    if (address.front() == '/') std::filesystem::remove(address);
  }
  std::string next() const {
    std::array<char, 256> text{};
    const ssize_t size = ::recv(socket.get(), text.data(), text.size(), MSG_DONTWAIT);
    return size < 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(size));
  }
  std::string address;
  net::Socket socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

}  // namespace

TEST_CASE("a service manager hears lines at a file and at a name", "[upgrade][notify]") {
  const std::string process = std::to_string(::getpid());
  for (const std::string& name :
       {(std::filesystem::temp_directory_path() / ("encore-notify-" + process)).string(),
        "@encore-notify-" + process}) {
    INFO(name);
    const Manager manager(name);
    ServiceManager(name).tell("READY=1\nMAINPID=7");
    CHECK(manager.next() == "READY=1\nMAINPID=7");
  }
}

TEST_CASE("no service manager, or one that has gone, is no error", "[upgrade][notify]") {
  ServiceManager("").tell("READY=1");
  ServiceManager("/nowhere/notify").tell("READY=1");
  ServiceManager(std::string(200, 'x')).tell("READY=1");
  CHECK_FALSE(ServiceManager("").is_there());
}

TEST_CASE("descriptors go into its store", "[upgrade][notify]") {
  const Manager manager("@encore-store-" + std::to_string(::getpid()));
  const net::Socket kept(::socket(AF_UNIX, SOCK_STREAM, 0));
  ServiceManager(manager.address).tell("FDSTORE=1\nFDNAME=listen", {kept.get()});
  std::array<char, 64> text{};
  iovec piece{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr head{};
  head.msg_iov = &piece;
  head.msg_iovlen = 1;
  head.msg_control = control.data();
  head.msg_controllen = control.size();
  REQUIRE(::recvmsg(manager.socket.get(), &head, MSG_DONTWAIT) > 0);
  const cmsghdr* const rights = CMSG_FIRSTHDR(&head);
  REQUIRE(rights != nullptr);
  CHECK(rights->cmsg_type == SCM_RIGHTS);
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(rights), sizeof descriptor);
  const net::Socket received(descriptor);
  CHECK(received);
}

TEST_CASE("the watchdog is told twice in its time, by the process that it is for",
          "[upgrade][notify]") {
  ::setenv("NOTIFY_SOCKET", "/run/x", 1);
  ::setenv("WATCHDOG_USEC", "30000000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  CHECK(ServiceManager::of_environment().watchdog() == Nanoseconds(std::chrono::seconds(15)));
  ::setenv("WATCHDOG_PID", "1", 1);
  CHECK_FALSE(ServiceManager::of_environment().watchdog());
  ::unsetenv("WATCHDOG_PID");
  ::setenv("WATCHDOG_USEC", "soon", 1);
  CHECK_FALSE(ServiceManager::of_environment().watchdog());
  ::unsetenv("WATCHDOG_USEC");
  ::unsetenv("NOTIFY_SOCKET");
}

}  // namespace encore::upgrade

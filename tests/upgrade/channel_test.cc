#include "proxy/upgrade/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "tests/catch.h"

namespace encore::upgrade {
namespace {

std::pair<Channel, Channel> make_pair() {
  auto made = Channel::pair();
  REQUIRE(made);
  return std::move(*made);
}

ino_t inode_of(int descriptor) {
  struct stat status{};
  REQUIRE(::fstat(descriptor, &status) == 0);
  return status.st_ino;
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (int each = 0; each < 4096; ++each) count += ::fcntl(each, F_GETFD) >= 0 ? 1U : 0U;
  return count;
}

}  // namespace

TEST_CASE("messages arrive in order, one a packet", "[upgrade][channel]") {
  auto [left, right] = make_pair();
  CHECK(right.receive().error() == Channel::Nothing::kYet);
  REQUIRE(left.send(Message{.type = MessageType::kHello}));
  REQUIRE(left.send(Message{.type = MessageType::kReady}.add(Field::kText, "now")));
  REQUIRE(right.wait(std::chrono::seconds(10)));
  auto first = right.receive();
  REQUIRE(first);
  CHECK(first->message.type == MessageType::kHello);
  auto second = right.receive();
  REQUIRE(second);
  CHECK(second->message.text(Field::kText) == "now");
  CHECK(right.receive().error() == Channel::Nothing::kYet);
}

TEST_CASE("descriptors arrive as the same files, not open over an exec", "[upgrade][channel]") {
  auto [left, right] = make_pair();
  std::vector<net::Socket> files;
  std::vector<int> numbers;
  for (std::size_t i = 0; i < kDescriptorsMax; ++i) {
    files.emplace_back(::socket(AF_UNIX, SOCK_STREAM, 0));
    REQUIRE(files.back());
    numbers.push_back(files.back().get());
  }
  REQUIRE(left.send(Message{.type = MessageType::kListener}, numbers));
  const auto received = right.receive();
  REQUIRE(received);
  REQUIRE(received->descriptors.size() == kDescriptorsMax);
  for (std::size_t i = 0; i < kDescriptorsMax; ++i) {
    const int descriptor = received->descriptors[i].get();
    REQUIRE(inode_of(descriptor) == inode_of(numbers[i]));
    REQUIRE((::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
  }
}

TEST_CASE("the end of the other process is seen behind what it has sent", "[upgrade][channel]") {
  auto [left, right] = make_pair();
  REQUIRE(left.send(Message{.type = MessageType::kHello}));
  (void)left.release();
  CHECK(right.receive());
  CHECK(right.receive().error() == Channel::Nothing::kEver);
  CHECK_FALSE(right.send(Message{.type = MessageType::kHello}));
}

TEST_CASE("a packet that is no message breaks the channel, and leaves no descriptor open",
          "[upgrade][channel][hostile]") {
  auto [left, right] = make_pair();
  const std::size_t before = open_descriptors();
  // One file twice as often as there is space for.
  for (const std::size_t count : {std::size_t{1}, std::size_t{253}}) {
    std::array<char, 3> bytes{'x', 'y', 'z'};
    iovec piece{bytes.data(), bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(253 * sizeof(int))> control{};
    msghdr head{};
    head.msg_iov = &piece;
    head.msg_iovlen = 1;
    head.msg_control = control.data();
    head.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&head);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    const std::vector<int> numbers(count, left.descriptor());
    std::memcpy(CMSG_DATA(rights), numbers.data(), count * sizeof(int));
    REQUIRE(::sendmsg(left.descriptor(), &head, 0) == 3);
    CHECK(right.receive().error() == Channel::Nothing::kBroken);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("a packet longer than a message breaks the channel", "[upgrade][channel][hostile]") {
  auto [left, right] = make_pair();
  const std::string bytes(kMessageBytesMax + 2, '\0');
  REQUIRE(::send(left.descriptor(), bytes.data(), bytes.size(), 0) ==
          static_cast<ssize_t>(bytes.size()));
  CHECK(right.receive().error() == Channel::Nothing::kBroken);
}

TEST_CASE("state goes over in memory, up to a limit", "[upgrade][channel]") {
  const std::string state(3'000'000, 's');
  const auto memory = write_memory(state);
  REQUIRE(memory);
  CHECK(read_memory(*memory, state.size()) == state);
  CHECK_FALSE(read_memory(*memory, state.size() - 1));
  CHECK_FALSE(read_memory(net::Socket(::socket(AF_UNIX, SOCK_STREAM, 0)), 1));
}

}  // namespace encore::upgrade

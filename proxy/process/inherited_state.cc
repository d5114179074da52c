#include "proxy/process/inherited_state.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "proxy/observe/log.h"

namespace encore::server {
namespace {

using upgrade::Field;
using upgrade::Message;
using upgrade::MessageType;

constexpr Nanoseconds kLongest = std::chrono::hours(24);
constexpr std::size_t kStateBytesMax = 64UL << 30U;

pid_t process_behind(const upgrade::Channel& channel) {
  ucred peer{};
  socklen_t size = sizeof peer;
  const int status = ::getsockopt(channel.descriptor(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return status == 0 ? peer.pid : 0;
}

Message hello_of(const config::Config& config) {
  Message hello{.type = MessageType::kHello};
  hello.add(Field::kText, ENCORE_VERSION);
  for (const config::Disk& disk : config.disk) hello.add(Field::kName, disk.path);
  return hello;
}

}  // namespace

InheritedState::InheritedState(upgrade::Channel channel, Nanoseconds patience)
    : end_(monotonic_now() + (patience.count() == 0 ? kLongest : patience)) {
  const pid_t process = process_behind(channel);
  replaced.push_back({.channel = std::move(channel), .process = process});
}

// Nothing: the old process has ended, or is too slow.
std::optional<upgrade::ReceivedMessage> InheritedState::next() {
  for (;;) {
    auto received = channel().receive();
    if (received) return std::move(*received);
    if (received.error() != upgrade::Channel::Nothing::kYet) {
      is_orphan = true;
      return std::nullopt;
    }
    const Nanoseconds left = end_ - monotonic_now();
    if (left.count() <= 0 || !channel().wait(left)) {
      is_late_ = true;
      return std::nullopt;
    }
  }
}

Result<InheritedState> InheritedState::receive(upgrade::Channel channel,
                                               const config::Config& config) {
  InheritedState inheritance(std::move(channel), config.upgrade.start);
  if (!inheritance.channel().send(hello_of(config))) inheritance.is_orphan = true;
  while (!inheritance.is_orphan) {
    auto received = inheritance.next();
    if (inheritance.is_late_) return fail("the old process does not respond");
    if (!received || received->message.type == MessageType::kOffered) break;
    if (auto taken = inheritance.take(std::move(*received)); !taken) {
      return std::unexpected(taken.error());
    }
  }
  if (inheritance.is_orphan) {
    log::warn("the old process has ended: starting without it");
    // They are opened as at any start.
    inheritance.disks.clear();
    inheritance.state_lock.reset();
  }
  return inheritance;
}

void InheritedState::take_listener(upgrade::ReceivedMessage& received) {
  if (received.descriptors.empty()) return;
  const std::string where(received.message.text(Field::kName));
  // More than fit into one message come in several.
  const bool goes_on =
      !listeners.empty() && received.message.number(Field::kNumber).value_or(0) != 0;
  if (!goes_on) listeners.push_back({.where = where, .bound = {}, .sockets = {}});
  std::ranges::move(received.descriptors, std::back_inserter(listeners.back().sockets));
}

Result<void> InheritedState::take(upgrade::ReceivedMessage received) {
  const Message& message = received.message;
  const bool has_descriptor = !received.descriptors.empty();
  switch (message.type) {
    case MessageType::kFailed:
      return fail("the old process continues: " + std::string(message.text(Field::kText)));
    case MessageType::kIdentity: {
      const auto read = filter::parse_seed(message.text(Field::kSeed));
      if (!read) return fail("the old process: " + read.error().message);
      seed = *read;
      instance = message.text(Field::kText);
      break;
    }
    case MessageType::kListener:
      take_listener(received);
      break;
    case MessageType::kAdmin:
      if (has_descriptor) {
        admin[std::string(message.text(Field::kName))] = std::move(received.descriptors.front());
      }
      break;
    case MessageType::kDisk:
      if (has_descriptor) {
        disks[std::string(message.text(Field::kName))] = std::move(received.descriptors.front());
      }
      break;
    case MessageType::kState:
      if (has_descriptor) {
        state_directory = message.text(Field::kName);
        state_lock = std::move(received.descriptors.front());
      }
      break;
    case MessageType::kTickets: {
      auto restored = net::TlsTickets::restore(message.text(Field::kBytes), monotonic_now());
      if (!restored) return std::unexpected(restored.error());
      tickets = std::move(*restored);
      break;
    }
    case MessageType::kPredecessor:
      if (has_descriptor) {
        replaced.push_back(
            {.channel = upgrade::Channel(std::move(received.descriptors.front())),
             .process = static_cast<pid_t>(message.number(Field::kPid).value_or(0))});
      }
      break;
    default:
      break;  // a later version's
  }
  return {};
}

std::optional<std::map<std::string, int>> InheritedState::take_disks() {
  if (disks.empty()) return std::nullopt;
  std::map<std::string, int> files;
  for (auto& [path, file] : disks) files[path] = file.release();
  return files;
}

Result<InheritedState::State> InheritedState::await_commit() {
  State state;
  if (is_orphan) return state;
  if (!channel().send(Message{.type = MessageType::kReady})) {
    is_orphan = true;
    log::warn("the old process has ended: this one serves");
    return state;
  }
  for (;;) {
    auto received = next();
    if (is_late_) return fail("the old process does not confirm the takeover");
    if (!received) {
      log::warn("the old process has ended: this one serves");
      return state;
    }
    if (received->message.type != MessageType::kCommit) {
      if (auto taken = take(std::move(*received)); !taken) return std::unexpected(taken.error());
      continue;
    }
    // A descriptor for each name, in their order.
    std::size_t at = 0;
    for (const auto& [field, name] : received->message.fields) {
      if (field != Field::kName || at == received->descriptors.size()) continue;
      auto bytes = upgrade::read_memory(received->descriptors[at++], kStateBytesMax);
      if (!bytes) return std::unexpected(bytes.error());
      if (name == "admission") state.admission = std::move(*bytes);
      if (name == "changed") state.changed = std::move(*bytes);
      if (name == "counts") state.counts = std::move(*bytes);
    }
    return state;
  }
}

}  // namespace encore::server

#include "proxy/process/process_link.h"

#include <utility>

#include "proxy/observe/log.h"
#include "proxy/process/purge_message.h"

namespace encore::server {

using upgrade::Field;
using upgrade::Message;
using upgrade::MessageType;

ProcessLink::ProcessLink(net::Loop& loop, upgrade::Channel channel, Handlers handlers)
    : channel_(std::move(channel)),
      handlers_(std::move(handlers)),
      self_(std::make_shared<ProcessLink*>(this)),
      watch_(loop, channel_.descriptor(), [this] { receive(); }) {}

bool ProcessLink::send(const Message& message, const std::vector<int>& descriptors) {
  return !has_ended_ && channel_.send(message, descriptors).has_value();
}

void ProcessLink::purge(const PurgeOrder& order, PurgeDone done) {
  const auto memory = upgrade::write_memory(upgrade::encode(purge_message(order)));
  const std::uint64_t number = ++purges_;
  const bool is_sent =
      memory && send(Message{.type = MessageType::kPurge}.add_number(Field::kNumber, number),
                     {memory->get()});
  if (!is_sent) return done({});
  waiting_.emplace(number, std::move(done));
}

void ProcessLink::receive() {
  while (!has_ended_) {
    auto received = channel_.receive();
    if (received) {
      take(*received);
      continue;
    }
    if (received.error() == upgrade::Channel::Nothing::kYet) return;
    return end();
  }
}

void ProcessLink::take(upgrade::ReceivedMessage& received) {
  switch (received.message.type) {
    case MessageType::kPurge:
      return take_purge(received);
    case MessageType::kPurged: {
      auto found = waiting_.extract(received.message.number(Field::kNumber).value_or(0));
      if (!found.empty()) found.mapped()(read_purged(received.message));
      return;
    }
    default:
      return handlers_.on_message(received);
  }
}

void ProcessLink::take_purge(const upgrade::ReceivedMessage& received) {
  const std::uint64_t number = received.message.number(Field::kNumber).value_or(0);
  const auto reply = [link = std::weak_ptr<ProcessLink*>(self_),
                      number](const PurgeResult& purged) {
    if (const auto alive = link.lock()) (void)(*alive)->send(purged_message(number, purged));
  };
  const auto read = [&received]() -> Result<PurgeOrder> {
    if (received.descriptors.empty()) return fail("a purge of another process has no text");
    auto bytes = upgrade::read_memory(received.descriptors.front(), upgrade::kLargeMessageBytesMax);
    if (!bytes) return std::unexpected(bytes.error());
    const auto message = upgrade::decode(*bytes, upgrade::kLargeMessageBytesMax);
    return message ? read_purge(*message) : std::unexpected(message.error());
  };
  auto order = read();
  if (order) return handlers_.on_purge(std::move(*order), reply);
  // It may be of any object: all go, rather than one too few.
  log::error("{}: purging everything", order.error().message);
  handlers_.on_purge({.all = true}, reply);
}

void ProcessLink::leave() {
  has_ended_ = true;
  watch_.stop();
  for (auto& [number, done] : std::exchange(waiting_, {})) done({});
}

void ProcessLink::end() {
  leave();
  handlers_.on_end();
}

}  // namespace encore::server

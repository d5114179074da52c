#include "proxy/process/purge_message.h"

#include <utility>

namespace encore::server {
namespace {

using upgrade::Field;
using upgrade::Message;
using upgrade::MessageType;

constexpr std::uint64_t kAll = 1;
constexpr std::uint64_t kSoft = 2;
constexpr std::uint64_t kForwardBan = 4;
constexpr std::uint64_t kKnown = 7;

void add_ban(const BanOrder& ban, Message& message) {
  message.add(Field::kBanHost, ban.host).add(Field::kBanUrl, ban.url);
  message.add(Field::kBanType, ban.content_type);
  for (const std::string& tag : ban.tags) message.add(Field::kBanTag, tag);
}

// Null: it is no list of the order.
std::vector<std::string>* list_of(PurgeOrder& order, Field field) {
  switch (field) {
    case Field::kUrl:
      return &order.urls;
    case Field::kPrefix:
      return &order.prefixes;
    case Field::kTag:
      return &order.tags;
    case Field::kKey:
      return &order.keys;
    default:
      return nullptr;
  }
}

}  // namespace

Message purge_message(const PurgeOrder& order) {
  Message message{.type = MessageType::kPurge};
  const bool is_forward = order.ban && order.ban->forward;
  // Earlier versions know no soft purge that is validated.
  const bool is_soft = order.soft && !order.validate;
  message.add_number(Field::kFlags, (order.all ? kAll : 0) | (is_soft ? kSoft : 0) |
                                        (is_forward ? kForwardBan : 0));
  for (const std::string& each : order.urls) message.add(Field::kUrl, each);
  for (const std::string& each : order.prefixes) message.add(Field::kPrefix, each);
  for (const std::string& each : order.tags) message.add(Field::kTag, each);
  for (const std::string& each : order.keys) message.add(Field::kKey, each);
  if (order.ban) add_ban(*order.ban, message);
  return message;
}

Result<PurgeOrder> read_purge(const Message& message) {
  const auto flags = message.number(Field::kFlags);
  if (!flags || (*flags & ~kKnown) != 0) {
    return fail("a purge of another process is not understood");
  }
  PurgeOrder order{.all = (*flags & kAll) != 0, .soft = (*flags & kSoft) != 0};
  for (const auto& [field, value] : message.fields) {
    if (std::vector<std::string>* const list = list_of(order, field)) list->push_back(value);
  }
  if (message.find(Field::kBanHost) == nullptr) return order;
  BanOrder& ban = order.ban.emplace();
  ban.forward = (*flags & kForwardBan) != 0;
  ban.host = message.text(Field::kBanHost);
  ban.url = message.text(Field::kBanUrl);
  ban.content_type = message.text(Field::kBanType);
  for (const auto& [field, value] : message.fields) {
    if (field == Field::kBanTag) ban.tags.push_back(value);
  }
  return order;
}

Message purged_message(std::uint64_t number, const PurgeResult& purged) {
  Message message{.type = MessageType::kPurged};
  message.add_number(Field::kNumber, number).add_number(Field::kConnections, purged.count);
  message.add_number(Field::kFlags, purged.lazily ? 1 : 0).add(Field::kName, purged.refusal);
  if (!purged.durable) message.add(Field::kText, purged.durable.error().message);
  return message;
}

PurgeResult read_purged(const Message& message) {
  PurgeResult purged{.count = message.number(Field::kConnections).value_or(0),
                     .lazily = message.number(Field::kFlags).value_or(0) != 0};
  purged.refusal = message.text(Field::kName);
  if (const std::string* const error = message.find(Field::kText)) purged.durable = fail(*error);
  return purged;
}

}  // namespace encore::server

#include "proxy/process/predecessors.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "proxy/observe/log.h"

namespace encore::server {

using upgrade::Field;
using upgrade::Message;
using upgrade::MessageType;

void Predecessors::add(std::vector<ReplacedProcess> replaced) {
  for (ReplacedProcess& each : replaced) add_one(std::move(each));
}

void Predecessors::add_one(ReplacedProcess replaced) {
  // One that was passed on may be known already.
  const auto is_same = [&](const auto& each) { return each->report.process == replaced.process; };
  if (replaced.process != 0 && std::ranges::any_of(all_, is_same)) return;
  auto one = std::make_unique<One>();
  One* const raw = one.get();
  one->report.process = replaced.process;
  one->since = monotonic_now();
  one->link = std::make_unique<ProcessLink>(
      loop_, std::move(replaced.channel),
      ProcessLink::Handlers{
          .on_message = [this, raw](upgrade::ReceivedMessage& received) { take(*raw, received); },
          .on_purge = handlers_.on_purge,
          .on_end = [this, raw] { loop_.post([this, raw] { remove(raw); }); }});
  all_.push_back(std::move(one));
}

void Predecessors::remove(const One* one) {
  const auto found =
      std::ranges::find_if(all_, [one](const auto& each) { return each.get() == one; });
  if (found == all_.end()) return;
  log::info("replaced process {} has ended, {} left", one->report.process, all_.size() - 1);
  all_.erase(found);
  handlers_.on_end();
}

void Predecessors::take(One& one, upgrade::ReceivedMessage& received) {
  const Message& message = received.message;
  switch (message.type) {
    case MessageType::kStatus:
      one.report.connections = message.number(Field::kConnections).value_or(0);
      one.report.tunnels = message.number(Field::kTunnels).value_or(0);
      break;
    case MessageType::kBuried:
      take_tombstones(message);
      break;
    case MessageType::kCounts:
      take_counts(received);
      break;
    case MessageType::kPredecessor:
      if (received.descriptors.empty()) break;
      add_one({.channel = upgrade::Channel(std::move(received.descriptors.front())),
               .process = static_cast<pid_t>(message.number(Field::kPid).value_or(0))});
      break;
    default:
      break;  // a later version's
  }
}

void Predecessors::take_tombstones(const Message& message) {
  std::vector<filter::Hash128> keys;
  for (const auto& [field, bytes] : message.fields) {
    filter::Hash128 key;
    if (field != Field::kKey || bytes.size() != sizeof key) continue;
    std::memcpy(&key, bytes.data(), sizeof key);
    keys.push_back(key);
  }
  handlers_.on_buried(keys, message.number(Field::kFlags).value_or(0) != 0);
}

void Predecessors::take_counts(const upgrade::ReceivedMessage& received) {
  if (received.descriptors.empty()) return;
  const auto text = upgrade::read_memory(received.descriptors.front(), kCountsBytesMax);
  const auto counts = text ? parse_counts(*text) : std::unexpected(text.error());
  if (counts) {
    handlers_.on_counts(*counts);
  } else {
    log::warn("{}", counts.error().message);
  }
}

std::vector<PredecessorReport> Predecessors::reports() const {
  std::vector<PredecessorReport> reports;
  for (const auto& each : all_) {
    reports.push_back(each->report);
    reports.back().replaced = monotonic_now() - each->since;
  }
  return reports;
}

void Predecessors::purge(const PurgeOrder& order, std::function<void()> done) {
  auto left = std::make_shared<std::size_t>(all_.size() + 1);
  const auto one_done = [left, done = std::move(done)] {
    if (--*left == 0) done();
  };
  for (const auto& each : all_) {
    each->link->purge(order, [one_done](const PurgeResult&) { one_done(); });
  }
  one_done();
}

void Predecessors::leave() {
  for (const auto& each : all_) each->link->leave();
  all_.clear();
}

void Predecessors::end_all() {
  for (const auto& each : all_) (void)each->link->send(Message{.type = MessageType::kEnd});
}

std::vector<std::pair<int, pid_t>> Predecessors::channels() const {
  std::vector<std::pair<int, pid_t>> channels;
  for (const auto& each : all_) {
    if (each->link->has_ended()) continue;
    channels.emplace_back(each->link->descriptor(), static_cast<pid_t>(each->report.process));
  }
  return channels;
}

Message buried_message(std::span<const filter::Hash128> keys, bool has_purge) {
  Message message{.type = MessageType::kBuried};
  message.add_number(Field::kFlags, has_purge ? 1 : 0);
  for (const filter::Hash128& key : keys) {
    message.add(Field::kKey, std::string(reinterpret_cast<const char*>(&key), sizeof key));
  }
  return message;
}

}  // namespace encore::server

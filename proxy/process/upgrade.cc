#include "proxy/process/upgrade.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <span>
#include <utility>

#include "base/check.h"
#include "proxy/net/child_process.h"
#include "proxy/observe/log.h"
#include "proxy/process/admin_listeners.h"
#include "proxy/process/proxy.h"
#include "proxy/process/state.h"

namespace encore::server {
namespace {

using upgrade::Channel;
using upgrade::Field;
using upgrade::Message;
using upgrade::MessageType;

constexpr std::size_t kPurgesDelayedMax = 256;
constexpr Nanoseconds kStatusInterval = std::chrono::milliseconds(250);

std::vector<int> numbers_of(std::span<const net::Socket> sockets) {
  std::vector<int> numbers;
  for (const net::Socket& each : sockets) numbers.push_back(each.get());
  return numbers;
}

// Sends keys whose records on disk the new process must forget.
void send_buried(const disk::Disks& disks, std::span<const filter::Hash128> keys,
                 ProcessLink& link) {
  if (keys.empty() && disks.has_noted_purge()) (void)link.send(buried_message({}, true));
  for (std::size_t at = 0; at < keys.size(); at += kKeysOfMessage) {
    const auto some = keys.subspan(at, std::min(kKeysOfMessage, keys.size() - at));
    (void)link.send(buried_message(some, disks.has_noted_purge()));
  }
}

std::vector<filter::Hash128> take_tombstones(disk::Disks& disks) {
  std::vector<filter::Hash128> keys;
  for (const disk::Purge& each : disks.take_tombstones()) keys.push_back(each.key);
  return keys;
}

// True if the new process has these disks, in this order.
bool has_same_disks(const Message& hello, const std::vector<config::Disk>& disks) {
  std::vector<std::string> paths;
  for (const auto& [field, value] : hello.fields) {
    if (field == Field::kName) paths.push_back(value);
  }
  return std::ranges::equal(paths, disks, {}, {}, &config::Disk::path);
}

}  // namespace

Upgrade::Upgrade(Host& host, upgrade::Program program)
    : host_(host),
      program_(std::move(program)),
      timer_(host.loop(), [this] { roll_back("the new process was not ready in upgrade.start"); }),
      status_(host.loop(), [this] { tell_status(); }) {}

std::optional<Error> Upgrade::refusal() const {
  if (step_ == Step::kHandedOver) return Error{"another process already serves"};
  if (step_ != Step::kNone) return Error{"an upgrade is in progress"};
  if (::getpid() == 1) {
    return Error{"process 1 of a container cannot be replaced; start another container"};
  }
  if (!host_.proxy().config().log.decisions.empty()) {
    return Error{"log.decisions is one file from start to end; a restart is needed"};
  }
  if (host_.predecessors().count() >= Predecessors::kMost) {
    return Error{std::to_string(Predecessors::kMost) +
                 " processes that were replaced still have clients; wait until one has ended"};
  }
  return std::nullopt;
}

void Upgrade::start(Done done) {
  if (const auto refused = refusal()) {
    ++failures_;
    log::error("upgrade refused: {}", refused->message);
    return done(std::unexpected(*refused));
  }
  done_ = std::move(done);
  failed_.clear();
  step_ = Step::kStarting;
  auto ends = Channel::pair();
  if (!ends) return rolled_back(ends.error().message);
  const auto process = upgrade::start(program_, ends->second);
  if (!process) return rolled_back(process.error().message);
  process_ = *process;
  channel_ = std::move(ends->first);
  log::info("upgrade: started process {} from {}", process_, program_.path);
  watch_ = std::make_unique<net::DescriptorWatch>(host_.loop(), channel_->descriptor(),
                                                  [this] { receive(); });
  const Nanoseconds limit = host_.proxy().config().upgrade.start;
  if (limit.count() != 0) timer_.start(limit);
}

void Upgrade::receive() {
  while (is_under_way() && step_ != Step::kRollingBack) {
    auto received = channel_->receive();
    if (received) {
      take(*received);
      continue;
    }
    if (received.error() == Channel::Nothing::kYet) return;
    return roll_back("the new process ended before it served");
  }
}

void Upgrade::take(upgrade::ReceivedMessage& received) {
  switch (received.message.type) {
    case MessageType::kHello:
      if (step_ == Step::kStarting) hold_disks(received.message);
      break;
    case MessageType::kFailed:
      failed_ = received.message.text(Field::kText);
      break;
    case MessageType::kReady:
      if (step_ == Step::kPreparing) save();
      break;
    case MessageType::kCommitted:
      if (step_ == Step::kCommitting) committed();
      break;
    default:
      break;  // a later version's
  }
}

void Upgrade::hold_disks(const Message& hello) {
  log::info("upgrade: process {} is version {}", process_, hello.text(Field::kText));
  if (!has_same_disks(hello, host_.proxy().config().disk)) {
    return roll_back("[[disk]] differs from that of the running process; a restart is needed");
  }
  step_ = Step::kHolding;
  disk::Disks* const disks = host_.proxy().shared().disks.get();
  if (disks == nullptr) return offer();
  const Nanoseconds limit = host_.proxy().config().upgrade.start;
  const auto patience = limit.count() == 0 ? Nanoseconds(std::chrono::hours(1)) : limit;
  auto held = std::make_shared<bool>(false);
  host_.jobs().submit([disks, patience, held] { *held = disks->hold(patience); },
                      [this, held] {
                        holds_disks_ = *held;
                        if (step_ != Step::kHolding) return;
                        if (*held) return offer();
                        roll_back("the disks could not be made durable in time");
                      });
}

bool Upgrade::send(const Message& message, const std::vector<int>& descriptors) {
  if (step_ == Step::kRollingBack || !channel_) return false;
  if (auto sent = channel_->send(message, descriptors); !sent) {
    roll_back(sent.error().message);
    return false;
  }
  return true;
}

void Upgrade::offer() {
  step_ = Step::kOffering;
  Proxy& proxy = host_.proxy();
  Message identity{.type = MessageType::kIdentity};
  identity.add(Field::kSeed, filter::to_hex(proxy.shared().identity_seed));
  identity.add(Field::kText, host_.instance());
  bool sent = send(identity);
  if (proxy.shared().disks != nullptr) {
    for (const auto& [path, descriptor] : proxy.shared().disks->files()) {
      sent =
          sent && send(Message{.type = MessageType::kDisk}.add(Field::kName, path), {descriptor});
    }
  }
  if (const StateDirectory* const state = host_.state()) {
    sent = sent && send(Message{.type = MessageType::kState}.add(Field::kName, state->path()),
                        {state->lock_descriptor()});
  }
  if (const auto& tickets = proxy.present_runtime()->tls.tickets()) {
    const std::string saved = tickets->save(monotonic_now());
    if (!saved.empty()) {
      sent = sent && send(Message{.type = MessageType::kTickets}.add(Field::kBytes, saved));
    }
  }
  for (const auto& [descriptor, process] : host_.predecessors().channels()) {
    Message message{.type = MessageType::kPredecessor};
    message.add_number(Field::kPid, static_cast<std::uint64_t>(process));
    sent = sent && send(message, {descriptor});
  }
  for (const auto& [where, socket] : host_.admin().duplicate_sockets()) {
    const Message message = Message{.type = MessageType::kAdmin}.add(Field::kName, where);
    sent = sent && send(message, {socket.get()});
  }
  if (!sent) return;
  proxy.duplicate_sockets(host_.loop(), [this](const std::vector<Listeners::Inherited>& listeners) {
    if (step_ == Step::kOffering) offer_listeners(listeners);
  });
}

void Upgrade::offer_listeners(const std::vector<Listeners::Inherited>& listeners) {
  for (const Listeners::Inherited& listener : listeners) {
    const std::span<const net::Socket> all(listener.sockets);
    for (std::size_t at = 0; at < all.size(); at += upgrade::kDescriptorsMax) {
      const auto some = all.subspan(at, std::min(upgrade::kDescriptorsMax, all.size() - at));
      Message message{.type = MessageType::kListener};
      message.add(Field::kName, listener.where).add_number(Field::kNumber, at);
      if (!send(message, numbers_of(some))) return;
    }
  }
  if (send(Message{.type = MessageType::kOffered})) step_ = Step::kPreparing;
}

// The state of this moment, on the jobs' thread: a filter may have hundreds of megabytes.
void Upgrade::save() {
  step_ = Step::kSaving;
  using State = std::vector<std::pair<std::string, std::shared_ptr<net::Socket>>>;
  auto state = std::make_shared<State>();
  Proxy& proxy = host_.proxy();
  auto counts = std::make_shared<CountTable>();
  const bool has_filter = cache::has_filter(proxy.config().admission.policy);
  host_.jobs().submit(
      [&proxy, state, counts, has_filter] {
        const auto put = [&state](const char* name, std::string_view bytes) {
          auto memory = upgrade::write_memory(bytes);
          if (!memory) return;
          state->emplace_back(name, std::make_shared<net::Socket>(std::move(*memory)));
        };
        Shared& shared = proxy.shared();
        if (has_filter) put("admission", shared.kernel->save_admission(monotonic_now()));
        if (shared.changed != nullptr) put("changed", shared.changed->save(wall_now()));
        *counts = counts_of(proxy.snapshot());
        put("counts", to_text(*counts));
      },
      [this, state, counts] {
        counts_ = std::move(*counts);
        if (step_ == Step::kSaving) commit(*state);
      });
}

void Upgrade::commit(
    const std::vector<std::pair<std::string, std::shared_ptr<net::Socket>>>& state) {
  Message message{.type = MessageType::kCommit};
  std::vector<int> descriptors;
  for (const auto& [name, memory] : state) {
    message.add(Field::kName, name);
    descriptors.push_back(memory->get());
  }
  if (send(message, descriptors)) step_ = Step::kCommitting;
}

void Upgrade::committed() {
  timer_.cancel();
  step_ = Step::kHandedOver;
  log::info("upgrade: process {} serves; this one drains", process_);
  watch_->stop();
  link_ = std::make_unique<ProcessLink>(
      host_.loop(), std::move(*channel_),
      ProcessLink::Handlers{.on_message =
                                [this](upgrade::ReceivedMessage& received) {
                                  if (received.message.type == MessageType::kEnd) {
                                    host_.on_end_wanted();
                                  }
                                },
                            .on_purge =
                                [this](PurgeOrder order, ProcessLink::PurgeDone done) {
                                  host_.purge_here(std::move(order), std::move(done));
                                },
                            .on_end = [] {}});
  channel_.reset();
  status_.start_periodic(kStatusInterval);
  host_.on_handed_over(process_);
  tell_status();
  for (DelayedPurge& each : std::exchange(delayed_, {})) {
    const auto there = each.order;
    host_.purge_here(std::move(each.order), [](const PurgeResult&) {});
    purge_there(there, std::move(each.done));
  }
  if (done_) std::exchange(done_, nullptr)(process_);
}

// The new process is ended before the disks are used again: two that write would ruin them.
void Upgrade::roll_back(std::string why) {
  if (step_ == Step::kNone || step_ == Step::kRollingBack || step_ == Step::kHandedOver) return;
  step_ = Step::kRollingBack;
  timer_.cancel();
  watch_->stop();
  for (auto last = channel_->receive(); last; last = channel_->receive()) {
    if (last->message.type == MessageType::kFailed) failed_ = last->message.text(Field::kText);
  }
  ::kill(process_, SIGKILL);
  auto ended = std::make_shared<std::string>();
  // In order behind a hold that may be in progress.
  host_.jobs().submit([process = process_, ended] { *ended = net::reap(process); },
                      [this, ended, why = std::move(why)] {
                        std::string all = why;
                        if (*ended != "signal 9") all += " (" + *ended + ")";
                        if (!failed_.empty()) all += ": " + failed_;
                        if (!std::exchange(holds_disks_, false)) return rolled_back(all);
                        disk::Disks* const disks = host_.proxy().shared().disks.get();
                        host_.jobs().submit([disks] { disks->resume(); },
                                            [this, all] { rolled_back(all); });
                      });
}

void Upgrade::rolled_back(const std::string& why) {
  step_ = Step::kNone;
  ++failures_;
  watch_.reset();
  channel_.reset();
  log::error("upgrade failed, nothing has changed: {}", why);
  for (DelayedPurge& each : std::exchange(delayed_, {})) {
    host_.purge_here(std::move(each.order), std::move(each.done));
  }
  if (done_) std::exchange(done_, nullptr)(fail(why));
}

bool Upgrade::delay_purge(PurgeOrder& order, ProcessLink::PurgeDone& done) {
  if (step_ < Step::kHolding || step_ == Step::kHandedOver || order.dry_run ||
      delayed_.size() == kPurgesDelayedMax) {
    return false;
  }
  delayed_.push_back({std::move(order), std::move(done)});
  return true;
}

void Upgrade::purge_there(const PurgeOrder& order, ProcessLink::PurgeDone done) {
  ENCORE_CHECK(link_ != nullptr, "there is another process");
  link_->purge(order, std::move(done));
}

void Upgrade::tell_status() {
  const Snapshot sample = host_.proxy().sample();
  Message status{.type = MessageType::kStatus};
  status.add_number(Field::kConnections, sample.connections_open);
  status.add_number(Field::kTunnels, sample.tunnels_open + sample.upgrades_open);
  (void)link_->send(status);
  disk::Disks* const disks = host_.proxy().shared().disks.get();
  if (disks == nullptr || is_telling_) return;
  is_telling_ = true;
  auto keys = std::make_shared<std::vector<filter::Hash128>>();
  host_.jobs().submit([disks, keys] { *keys = take_tombstones(*disks); },
                      [this, disks, keys] {
                        is_telling_ = false;
                        send_buried(*disks, *keys, *link_);
                      });
}

void Upgrade::finish() {
  if (link_ == nullptr) return;
  status_.cancel();
  if (disk::Disks* const disks = host_.proxy().shared().disks.get()) {
    send_buried(*disks, take_tombstones(*disks), *link_);
  }
  const auto counts = difference(counts_of(host_.proxy().snapshot()), counts_);
  if (const auto memory = upgrade::write_memory(to_text(counts))) {
    (void)link_->send(Message{.type = MessageType::kCounts}, {memory->get()});
  }
}

}  // namespace encore::server

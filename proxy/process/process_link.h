// ProcessLink: the channel between an old process and the one that has replaced it, after the
// commit. Both serve clients, so each repeats the purges of the other. Confined to its loop's
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "proxy/net/descriptor_watch.h"
#include "proxy/net/loop.h"
#include "proxy/settings/purge_order.h"
#include "proxy/upgrade/channel.h"

namespace encore::server {

class ProcessLink {
 public:
  using PurgeDone = std::function<void(const PurgeResult&)>;
  struct Handlers {
    // All messages but those of purges.
    std::function<void(upgrade::ReceivedMessage&)> on_message;
    // Purges, and calls `done` later, once.
    std::function<void(PurgeOrder order, PurgeDone done)> on_purge;
    // The other process has ended. It must not destroy the link.
    std::function<void()> on_end;
  };
  ProcessLink(net::Loop& loop, upgrade::Channel channel, Handlers handlers);
  ProcessLink(const ProcessLink&) = delete;
  ProcessLink& operator=(const ProcessLink&) = delete;

  // False: the other process has gone, or does not read.
  bool send(const upgrade::Message& message, const std::vector<int>& descriptors = {});
  // The other process does the same; calls `done` with its result, or, where it ends first, with
  // nothing purged.
  void purge(const PurgeOrder& order, PurgeDone done);
  // Borrowed, for a process that comes later.
  int descriptor() const { return channel_.descriptor(); }
  bool has_ended() const { return has_ended_; }
  // Another process has the channel: reads nothing more, and answers purges that wait.
  void leave();

 private:
  void receive();
  void take(upgrade::ReceivedMessage& received);
  void take_purge(const upgrade::ReceivedMessage& received);
  void end();

  upgrade::Channel channel_;
  Handlers handlers_;
  std::uint64_t purges_ = 0;
  std::map<std::uint64_t, PurgeDone> waiting_;
  bool has_ended_ = false;
  std::shared_ptr<ProcessLink*> self_;  // for replies; null once this has gone
  net::DescriptorWatch watch_;
};

}  // namespace encore::server

// InheritedState: what a new process has of the one that it replaces, up to the commit. It is
// received before anything else is opened, by reads that wait: nothing is served yet. Confined to
// the main thread. The steps are in docs/UPGRADE.md; why in this order: docs/decisions/0505.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "filter/hash.h"
#include "proxy/net/socket.h"
#include "proxy/net/tls_tickets.h"
#include "proxy/process/listeners.h"
#include "proxy/upgrade/channel.h"

namespace encore::server {

// A process that was replaced and has clients yet.
struct ReplacedProcess {
  upgrade::Channel channel;
  pid_t process = 0;
};

class InheritedState {
 public:
  // Tells the old process what this configuration has, and takes what it gives. If it has died
  // meanwhile, what it gave is used, and this is a plain start otherwise. Errors: the old process
  // goes on, and why.
  static Result<InheritedState> receive(upgrade::Channel channel, const config::Config& config);

  // Everything is made: waits for the order to serve. Returns the state that comes with it; nothing
  // where the old process has died. Errors: as above.
  struct State {
    std::optional<std::string> admission;
    std::optional<std::string> changed;
    std::optional<std::string> counts;
  };
  Result<State> await_commit();

  std::optional<filter::Seed> seed = {};  // the keys'
  std::string instance = {};              // in Via; empty: none was given
  std::vector<Listeners::Inherited> listeners = {};
  std::map<std::string, net::Socket> admin = {};  // by address, as the other's config has it
  std::map<std::string, net::Socket> disks = {};  // by path
  std::optional<std::string> state_directory = {};
  net::Socket state_lock = {};
  std::shared_ptr<net::TlsTickets> tickets = {};  // null: new ones
  // The one that this replaces, and those that it had replaced.
  std::vector<ReplacedProcess> replaced = {};
  bool is_orphan = false;  // the old process has died

  // The files of the disks, given away; nothing where there are none.
  std::optional<std::map<std::string, int>> take_disks();

 private:
  InheritedState(upgrade::Channel channel, Nanoseconds patience);
  std::optional<upgrade::ReceivedMessage> next();
  Result<void> take(upgrade::ReceivedMessage received);
  void take_listener(upgrade::ReceivedMessage& received);
  upgrade::Channel& channel() { return replaced.front().channel; }

  MonotonicTime end_;  // its patience is over
  bool is_late_ = false;
};

}  // namespace encore::server

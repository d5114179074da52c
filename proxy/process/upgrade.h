// Upgrade: this process starts the one that takes its place, and gives it what it has, step by
// step. Until the new one says that it serves, every step can be taken back: it is ended, and this
// process goes on as before. Then this one drains. Confined to the main thread. The steps are in
// docs/UPGRADE.md; why in this order: docs/decisions/0505.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "proxy/net/descriptor_watch.h"
#include "proxy/net/loop.h"
#include "proxy/net/timer.h"
#include "proxy/observe/carried_counts.h"
#include "proxy/process/jobs.h"
#include "proxy/process/listeners.h"
#include "proxy/process/predecessors.h"
#include "proxy/process/process_link.h"
#include "proxy/upgrade/channel.h"
#include "proxy/upgrade/program.h"

namespace encore::server {

class AdminListeners;
class Proxy;
class StateDirectory;

class Upgrade {
 public:
  // The process. Borrowed.
  class Host {
   public:
    virtual net::Loop& loop() = 0;
    virtual Jobs& jobs() = 0;
    virtual Proxy& proxy() = 0;
    virtual AdminListeners& admin() = 0;
    virtual const StateDirectory* state() = 0;  // null: there is none
    virtual Predecessors& predecessors() = 0;
    virtual const std::string& instance() const = 0;  // in Via
    // Purges what this process has, and calls `done` later, once.
    virtual void purge_here(PurgeOrder order, ProcessLink::PurgeDone done) = 0;
    // Another process serves: drains.
    virtual void on_handed_over(pid_t successor) = 0;
    // The successor wants it to end as by SIGTERM.
    virtual void on_end_wanted() = 0;

   protected:
    ~Host() = default;
  };

  Upgrade(Host& host, upgrade::Program program);
  Upgrade(const Upgrade&) = delete;
  Upgrade& operator=(const Upgrade&) = delete;

  // The process id of the new one, which serves; else why this one goes on unchanged.
  using Done = std::move_only_function<void(const Result<pid_t>&)>;
  void start(Done done);
  // This process ends, or another reason; nothing if there is none.
  void cancel(std::string why) { roll_back(std::move(why)); }
  bool is_under_way() const { return step_ != Step::kNone && step_ != Step::kHandedOver; }
  bool has_handed_over() const { return step_ == Step::kHandedOver; }

  // A purge that comes while another process takes over waits for the end of that. False: it need
  // not, or too many wait.
  bool delay_purge(PurgeOrder& order, ProcessLink::PurgeDone& done);
  // The other process, which has all by now, does it too. REQUIRES: has_handed_over().
  void purge_there(const PurgeOrder& order, ProcessLink::PurgeDone done);
  // This process ends: sends its counters and the last keys to forget.
  void finish();

  std::uint64_t failures() const { return failures_; }

 private:
  enum class Step : std::uint8_t {
    kNone,
    kStarting,    // The new process reads its configuration.
    kHolding,     // The disks are made durable, and nothing more is written.
    kOffering,    // It gets sockets and files.
    kPreparing,   // It makes all that it needs, and reads the disks.
    kSaving,      // The state of this moment is written.
    kCommitting,  // It begins to serve.
    kRollingBack,
    kHandedOver,
  };
  std::optional<Error> refusal() const;
  void receive();
  void take(upgrade::ReceivedMessage& received);
  void hold_disks(const upgrade::Message& hello);
  void offer();
  void offer_listeners(const std::vector<Listeners::Inherited>& listeners);
  void save();
  void commit(const std::vector<std::pair<std::string, std::shared_ptr<net::Socket>>>& state);
  void committed();
  void roll_back(std::string why);
  void rolled_back(const std::string& why);
  bool send(const upgrade::Message& message, const std::vector<int>& descriptors = {});
  void tell_status();

  Host& host_;
  const upgrade::Program program_;
  Step step_ = Step::kNone;
  Done done_;
  pid_t process_ = 0;
  bool holds_disks_ = false;
  std::optional<upgrade::Channel> channel_;
  std::unique_ptr<net::DescriptorWatch> watch_;
  net::Timer timer_;   // for all steps
  net::Timer status_;  // behind the last
  std::unique_ptr<ProcessLink> link_;
  std::string failed_;  // reason that the new process gave
  CountTable counts_;   // when it took over
  struct DelayedPurge {
    PurgeOrder order;
    ProcessLink::PurgeDone done;
  };
  std::vector<DelayedPurge> delayed_;
  bool is_telling_ = false;
  std::uint64_t failures_ = 0;
};

}  // namespace encore::server

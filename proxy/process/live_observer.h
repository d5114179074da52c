// LiveObserver: observes the process once a second, for the live page: its history, how near to
// each limit it has been, and what else there is to say of it. Confined to the main thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "config/config.h"
#include "proxy/observe/live.h"
#include "proxy/observe/rate_window.h"
#include "proxy/observe/top.h"
#include "proxy/process/proxy.h"

namespace encore::server {

// Data that the live page shows in addition to the numbers of a snapshot.
class LiveSource {
 public:
  virtual LiveStatus status(const Snapshot& snapshot) const = 0;
  virtual const History& history() const = 0;
  virtual OutcomeReport outcome(Outcome outcome) const = 0;
  virtual TopReport top() const = 0;

 protected:
  ~LiveSource() = default;
};

class LiveObserver final : public LiveSource {
 public:
  // `proxy` is null until it is made; there is nothing to observe before. The history's clock goes
  // as the monotonic one does, and begins at the wall's time.
  LiveObserver(const std::unique_ptr<Proxy>& proxy, MonotonicTime started, WallTime started_at);

  // Once a second; calls in between do nothing.
  void look(MonotonicTime now);
  // Sets what is shown from now on.
  void set_ready(bool ready) { ready_ = ready; }
  void note_reload(std::string fault) { last_reload_ = {wall_now(), std::move(fault)}; }
  // Descriptors allow fewer clients than the configuration. That is a warning only when half of
  // those have come: a small site never meets the limit.
  void set_few_descriptors(std::string text) { few_descriptors_ = std::move(text); }
  const std::string& few_descriptors() const { return few_descriptors_; }

  // Sentences for the operator: about the admin listener, and about limits that are lower than the
  // configured ones.
  std::vector<std::string> warnings() const;

  LiveStatus status(const Snapshot& snapshot) const override;
  const History& history() const override { return history_; }
  OutcomeReport outcome(Outcome outcome) const override;
  TopReport top() const override;

 private:
  std::vector<LimitReport> limits(const Snapshot& snapshot) const;
  std::int64_t milliseconds(MonotonicTime now) const;

  const std::unique_ptr<Proxy>& proxy_;
  const MonotonicTime started_;
  const WallTime started_at_;
  bool ready_ = false;
  std::string few_descriptors_;  // empty: they are enough
  std::optional<LiveStatus::Reload> last_reload_;
  MonotonicTime looked_{};
  History history_;
  RateWindow rates_;
  std::vector<std::uint64_t> peaks_;  // those of the limits, in their order
};

}  // namespace encore::server

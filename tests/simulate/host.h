// Host: the process around a simulated proxy. It makes one from a configuration, gives its workers
// their turns when the system says so, reloads, purges and drains it, and looks for what it has
// left behind. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cache/journal.h"
#include "config/config.h"
#include "proxy/process/proxy.h"
#include "proxy/process/purge.h"
#include "tests/simulate/slow_disk.h"
#include "tests/simulate/system.h"
#include "tests/simulate/tiers.h"

namespace encore::simulate {

class Host {
 public:
  // Receives a fault of a proxy: the kind of finding, and what it is.
  using OnFault = std::function<void(const std::string& kind, const std::string& what)>;

  // Gets the lines of the access log that its workers hand over.
  using OnLog = std::function<void(std::string_view lines)>;

  // `on_log` is empty where nothing is logged. `disk` is used where the configuration has one.
  // Borrowed.
  Host(System& system, const config::Config& config, OnFault on_fault, const OnLog& on_log,
       SlowDisk& disk);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const config::Config& config() const { return proxy_->config(); }
  // The proxy's work apart from requests, a few times a second.
  void tick();
  void reload(const config::Config& config);
  // The hours of changes, as they are saved at an end; empty where they are not published.
  std::string save_hours();
  // As at a start. False where the bytes are refused: all is as it was then.
  bool restore_hours(const std::string& bytes);
  // The objects that are published as resident are those of the cache, counted, and bit by bit.
  void look_at_resident();
  // How many stored responses there were.
  std::uint64_t purge(const server::PurgeOrder& order);
  server::Proxy& proxy() { return *proxy_; }
  bool has_disk() const { return !config().disk.empty(); }
  // How many responses are stored, in memory and on disk.
  std::uint64_t stored() const;
  // When it was made, by the world's clock.
  double started() const { return started_; }
  // No new client from now on. has_ended() tells when the last worker is done.
  void drain();
  bool has_ended() const { return workers_ended_ == proxy_->workers().size(); }
  // Compares what it holds with what it should (Held). Between turns.
  void look_at_held();
  // The same of readers alone whose answers have no body: they are there no longer than a socket
  // holds their heads back.
  void look_at_bodiless();
  // The same while no request is in progress. False: the proxy has something in progress still.
  bool look_at_rest();
  // All that it has counted of requests.
  server::Snapshot counted() const { return proxy_->snapshot(); }
  // Once all workers have ended: finds things held that nobody needs any more, and checks that the
  // journal replays.
  void look_for_leaks();
  // Bytes that its disks were given since the start, by what for.
  void count_disk(const std::function<void(const char* what, std::uint64_t count)>& count) const;
  // By how many transfers and connections it is kept from its end.
  std::string describe() const;
  std::uint64_t decisions() const { return decisions_; }

  // Called when readers were cut because there was no memory for what they are slow to take.
  std::function<void(std::uint64_t count)> on_readers_cut;
  // Called when connections were revoked after a reload.
  std::function<void(std::uint64_t count)> on_revoked;

 private:
  void turn(std::size_t worker);
  void take_journal();
  void verify_journal();
  void look_at_gauges();
  void look_at_graves();

  System& system_;
  SlowDisk& disk_;
  OnFault on_fault_;
  std::uint32_t variants_max_;  // covers all configurations so far
  std::unique_ptr<cache::JournalRecorder> recorder_;
  std::string journal_;
  filter::Seed seed_{};
  std::unique_ptr<server::Proxy> proxy_;
  std::size_t workers_ended_ = 0;
  std::uint64_t decisions_ = 0;
  double started_ = 0;
  std::int64_t drained_ = 0;  // when its end began
};

}  // namespace encore::simulate

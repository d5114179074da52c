// The proxy as a process: its configuration out of the seed, its start, what it says of itself, its
// end.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>

#include "tests/fuzz/proxy/world.h"

namespace encore::proxyfuzz {

class Process {
 public:
  struct Options {
    std::string program;
    std::string directory;  // for the configuration and what it says
    bool reverse = false;
    std::string upstream;              // [[origin]] and [upstream], as lines
    std::array<std::string, 2> tls{};  // the listeners', as lines; empty: plain
  };

  // Starts it and waits until it is ready; the program ends where that fails. The world's rules and
  // lists of listener 1 are its configuration's.
  Process(const Options& options, const World& world, Random& random);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Returns the port of listener 0 or 1.
  std::uint16_t port(int listener = 0) const noexcept {
    return listener == 0 ? port_ : second_port_;
  }
  std::uint16_t admin_port() const noexcept { return admin_port_; }
  const std::string& config() const noexcept { return config_; }
  bool is_running();
  // Makes it read its configuration again, which is the same: requests in progress go on, and share
  // nothing with those that come.
  void reload();
  // Has it read a configuration with the world's rules, which are others, and waits until they are
  // in force. False: they are not.
  bool take_rules(const World& world);
  // Asks it to end, or waits for that; what is wrong with how it ended, if anything.
  std::string stop(double seconds);
  // True if it logs requests, in Accounts' form.
  bool has_log() const;
  // Returns the log. It is whole when the process has ended.
  std::string log() const;
  // The page of its metrics, and the sum of all series of a name on such a page.
  std::string metrics() const;
  static std::uint64_t counted(const std::string& name, const std::string& page);
  std::size_t descriptors() const;
  std::size_t resident_bytes() const;

 private:
  std::string make_config(const Options& options, const World& world, Random& random) const;
  std::string listeners(const Options& options, const World& world) const;
  std::string said() const;
  void write_config(const World& world);
  // True if it has taken over so many configurations by now; waits a while for that.
  bool await_reloads(std::uint64_t wanted) const;
  std::uint64_t reloads() const;

  std::uint16_t port_;
  std::uint16_t second_port_;
  std::uint16_t admin_port_;
  std::string without_rules_;
  std::string config_path_;
  std::string config_;
  std::uint64_t reloads_asked_ = 0;
  std::string output_path_;
  std::string disk_path_;
  std::string log_path_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace encore::proxyfuzz

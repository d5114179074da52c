// LoginHelper: asks a program whether a password is right, by the protocol of Squid's helpers for
// basic authentication: a line "NAME PASSWORD", both with %XX for bytes that are not plain, is
// answered by "OK", "ERR" or "BH". Each question has a process of the program to itself, which is
// kept for the next. Thread-safe; a question blocks its thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "base/time.h"
#include "proxy/net/socket.h"

namespace encore::server {

// Nobody knows where the one that should say so failed.
enum class LoginVerdict { kWrong, kRight, kUnknown };

class LoginHelper {
 public:
  static constexpr Nanoseconds kAnswerTime = std::chrono::seconds(10);
  static constexpr std::size_t kAnswerBytesMax = 4096;

  // The program and its arguments. Errors: a program that is not there or may not be run.
  static Result<void> check_program(const std::vector<std::string>& command);
  // REQUIRES: a command.
  explicit LoginHelper(std::vector<std::string> command);
  // Ends its processes. REQUIRES: nobody asks.
  ~LoginHelper();
  LoginHelper(const LoginHelper&) = delete;
  LoginHelper& operator=(const LoginHelper&) = delete;

  LoginVerdict ask(std::string_view name, std::string_view password);
  // Questions in progress and later ones are kUnknown, without delay. Any thread.
  void stop();

 private:
  struct Process {
    pid_t id = 0;
    net::Socket socket;
    bool has_answered = false;
  };
  Process take_idle();
  Result<Process> start() const;
  static void end(Process& process);
  bool send(const Process& process, std::string_view line, MonotonicTime deadline) const;
  // The answer without its end of line; empty: there was none in time.
  std::string receive(const Process& process, MonotonicTime deadline) const;
  bool wait(int descriptor, short events, MonotonicTime deadline) const;
  LoginVerdict verdict_of(std::string_view answer);
  // Says so once a minute at most.
  void warn(const std::string& what);

  const std::vector<std::string> command_;
  net::Socket stopped_;  // an eventfd
  Mutex mutex_;
  std::vector<Process> idle_ ENCORE_GUARDED_BY(mutex_);
  MonotonicTime warned_ ENCORE_GUARDED_BY(mutex_){};
};

}  // namespace encore::server

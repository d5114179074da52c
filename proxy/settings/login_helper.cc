#include "proxy/settings/login_helper.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "proxy/net/child_process.h"

namespace encore::server {
namespace {

constexpr std::size_t kIdleMax = 8;
constexpr Nanoseconds kWarnedEach = std::chrono::minutes(1);
// These tell a program that it is the one that systemd watches.
constexpr std::string_view kLeftOut[] = {"NOTIFY_SOCKET=",  "LISTEN_PID=",   "LISTEN_FDS=",
                                         "LISTEN_FDNAMES=", "WATCHDOG_PID=", "WATCHDOG_USEC="};

bool is_plain(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '.';
}

void append_escaped(std::string& line, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const char byte : text) {
    if (is_plain(byte)) {
      line += byte;
    } else {
      const auto value = static_cast<std::uint8_t>(byte);
      line += '%';
      line += kDigits[value >> 4U];
      line += kDigits[value & 15U];
    }
  }
}

// Programs end a text at a zero byte: another name, or another password, would be checked.
bool has_control(std::string_view text) {
  return std::ranges::any_of(
      text, [](char byte) { return static_cast<std::uint8_t>(byte) < 0x20 || byte == 0x7f; });
}

}  // namespace

Result<void> LoginHelper::check_program(const std::vector<std::string>& command) {
  const std::string& path = command.front();
  if (!path.starts_with('/')) return fail(path + ": accepted: an absolute path of a program");
  if (::access(path.c_str(), X_OK) != 0) {
    return fail(path + ": cannot be run: " + std::strerror(errno));
  }
  return {};
}

LoginHelper::LoginHelper(std::vector<std::string> command)
    : command_(std::move(command)), stopped_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  ENCORE_CHECK(!command_.empty(), "a helper has a program");
}

LoginHelper::~LoginHelper() {
  const MutexLock lock(mutex_);
  for (Process& process : idle_) end(process);
}

void LoginHelper::stop() {
  const std::uint64_t one = 1;
  (void)::write(stopped_.get(), &one, sizeof one);
}

LoginVerdict LoginHelper::ask(std::string_view name, std::string_view password) {
  // A directory takes a login without a password for nobody's, and says yes.
  if (name.empty() || password.empty()) return LoginVerdict::kWrong;
  if (has_control(name) || has_control(password)) return LoginVerdict::kWrong;
  std::string line;
  append_escaped(line, name);
  line += ' ';
  append_escaped(line, password);
  line += '\n';
  const MonotonicTime deadline = monotonic_now() + kAnswerTime;
  while (true) {
    Process process = take_idle();
    if (!process.socket) {
      auto started = start();
      if (!started) {
        warn(started.error().message + "; logins get 503");
        return LoginVerdict::kUnknown;
      }
      process = std::move(*started);
    }
    std::string answer;
    if (send(process, line, deadline)) answer = receive(process, deadline);
    if (answer.empty()) {
      const bool may_have_ended_before = process.has_answered && monotonic_now() < deadline;
      end(process);
      if (may_have_ended_before) continue;  // a new one is asked
      warn("it did not answer; logins get 503");
      return LoginVerdict::kUnknown;
    }
    process.has_answered = true;
    const LoginVerdict verdict = verdict_of(answer);
    const MutexLock lock(mutex_);
    if (idle_.size() < kIdleMax) {
      idle_.push_back(std::move(process));
    } else {
      end(process);
    }
    return verdict;
  }
}

LoginVerdict LoginHelper::verdict_of(std::string_view answer) {
  const std::string_view word = answer.substr(0, answer.find(' '));
  if (word == "OK") return LoginVerdict::kRight;
  if (word == "ERR") return LoginVerdict::kWrong;
  if (word == "BH") {
    // It could not check. Some say so of wrong passwords, which guesses must not profit from.
    warn("it answered BH; such a login is refused as wrong");
    return LoginVerdict::kWrong;
  }
  // Not shown: it may name the user.
  warn("its answer is neither OK, ERR nor BH; logins get 503");
  return LoginVerdict::kUnknown;
}

// One that has something to say before it is asked would answer this question with another one's
// answer.
LoginHelper::Process LoginHelper::take_idle() {
  while (true) {
    Process process;
    {
      const MutexLock lock(mutex_);
      if (idle_.empty()) return process;
      process = std::move(idle_.back());
      idle_.pop_back();
    }
    char byte = 0;
    const ssize_t got = ::recv(process.socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return process;
    end(process);
  }
}

Result<LoginHelper::Process> LoginHelper::start() const {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(std::string("socketpair: ") + std::strerror(errno));
  }
  const net::Socket its(ends[1]);
  Process process{.id = 0, .socket = net::Socket(ends[0]), .has_answered = false};
  const auto id =
      net::start_child({.path = command_.front(),
                        .arguments = command_,
                        .variables = net::variables_without(kLeftOut),
                        .descriptors = {{its.get(), STDIN_FILENO}, {its.get(), STDOUT_FILENO}},
                        .last_descriptor = STDERR_FILENO,
                        .has_own_group = true,
                        .blocks_sigterm = true});
  if (!id) return std::unexpected(id.error());
  process.id = *id;
  return process;
}

void LoginHelper::end(Process& process) {
  process.socket.reset();
  ::kill(-process.id, SIGKILL);
  (void)net::reap(process.id);
}

bool LoginHelper::wait(int descriptor, short events, MonotonicTime deadline) const {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - monotonic_now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 2> watched = {pollfd{.fd = descriptor, .events = events, .revents = 0},
                                     pollfd{.fd = stopped_.get(), .events = POLLIN, .revents = 0}};
    const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return false;
    if (watched[1].revents != 0) return false;
    if (ready > 0) return true;
  }
}

bool LoginHelper::send(const Process& process, std::string_view line,
                       MonotonicTime deadline) const {
  while (!line.empty()) {
    if (!wait(process.socket.get(), POLLOUT, deadline)) return false;
    const ssize_t sent =
        ::send(process.socket.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (sent > 0) line.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string LoginHelper::receive(const Process& process, MonotonicTime deadline) const {
  std::string answer;
  while (answer.size() < kAnswerBytesMax) {
    if (!wait(process.socket.get(), POLLIN, deadline)) return {};
    std::array<char, 512> bytes;
    const ssize_t got = ::recv(process.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return {};
    answer.append(bytes.data(), static_cast<std::size_t>(got));
    const std::size_t end = answer.find('\n');
    if (end == std::string::npos) continue;
    // More than one line is an answer to something else.
    return end + 1 == answer.size() ? answer.substr(0, end) : std::string();
  }
  return {};
}

void LoginHelper::warn(const std::string& what) {
  const MonotonicTime now = monotonic_now();
  {
    const MutexLock lock(mutex_);
    if (warned_ != MonotonicTime{} && now - warned_ < kWarnedEach) return;
    warned_ = now;
  }
  spdlog::error("users_helper {}: {}", command_.front(), what);
}

}  // namespace encore::server

#include "sim/cli/interrupt.h"

#include <poll.h>
#include <semaphore.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace encore::sim {
namespace {

constexpr long kLookEveryNs = 5'000'000;

// State for the handler.
Monitor* asked = nullptr;
sem_t signalled;

void on_signal(int) {
  const int error = errno;
  asked->stop = true;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  sem_post(&signalled);
  errno = error;
}

void set_handler(void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) {
    sigaction(signal, &action, nullptr);
  }
}

// As far as there is room for it now.
void write_now(int fd, std::string_view text) {
  pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
  if (!text.empty() && ::poll(&room, 1, 0) == 1) {
    [[maybe_unused]] const ssize_t written = ::write(fd, text.data(), text.size());
  }
}

}  // namespace

Interrupt::Interrupt(Monitor& monitor) : monitor_(monitor) {
  ENCORE_CHECK(asked == nullptr, "one Interrupt at a time");
  asked = &monitor;
  sem_init(&signalled, 0, 0);
  set_handler(on_signal);
  watcher_ = std::thread([this] { watch(); });
}

Interrupt::~Interrupt() {
  ended_ = true;
  sem_post(&signalled);
  watcher_.join();
  set_handler(SIG_DFL);
  sem_destroy(&signalled);
  asked = nullptr;
}

void Interrupt::set_final_output(FinalOutput words) {
  const MutexLock lock(mutex_);
  words_ = std::move(words);
}

void Interrupt::writing() {
  {
    const MutexLock lock(mutex_);
    words_.out.clear();
    words_.file_path.clear();
  }
  writing_since_ = monotonic_now();
}

void Interrupt::watch() {
  while (sem_wait(&signalled) != 0) {
  }
  const MonotonicTime begin = monotonic_now();
  while (!ended_) {
    if (is_time_over(begin)) {
      abandon();
    }
    const timespec pause{.tv_sec = 0, .tv_nsec = kLookEveryNs};
    nanosleep(&pause, nullptr);
  }
}

bool Interrupt::is_time_over(MonotonicTime signalled_at) const {
  const MonotonicTime writing_since = writing_since_;
  const bool noticed = monitor_.heard && writing_since == MonotonicTime{};
  return monotonic_now() - std::max(signalled_at, writing_since) >
         (noticed ? kGraceNoticed : kGrace);
}

void Interrupt::abandon() {
  const MutexLock lock(mutex_);
  write_now(STDOUT_FILENO, words_.out);
  write_now(STDERR_FILENO, (isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "") + words_.err);
  if (!words_.file_path.empty()) {
    std::ofstream(words_.file_path, std::ios::binary | std::ios::trunc) << words_.file;
  }
  _exit(kExitInterrupted);
}

}  // namespace encore::sim

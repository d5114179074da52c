#include "proxy/net/child_process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace encore::net {
namespace {

struct Actions {
  Actions() { ::posix_spawn_file_actions_init(&value); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() { ::posix_spawn_file_actions_destroy(&value); }
  posix_spawn_file_actions_t value{};
};

struct Attributes {
  Attributes() { ::posix_spawnattr_init(&value); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() { ::posix_spawnattr_destroy(&value); }
  posix_spawnattr_t value{};
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> found;
  for (std::string& text : texts) found.push_back(text.data());
  found.push_back(nullptr);
  return found;
}

}  // namespace

Result<pid_t> start_child(const ChildPlan& plan) {
  Actions actions;
  // Also where the numbers are the same: then it is kept over the exec.
  for (const auto& [ours, its] : plan.descriptors) {
    ::posix_spawn_file_actions_adddup2(&actions.value, ours, its);
  }
  ::posix_spawn_file_actions_addclosefrom_np(&actions.value, plan.last_descriptor + 1);
  Attributes attributes;
  sigset_t blocked;
  sigemptyset(&blocked);
  if (plan.blocks_sigterm) sigaddset(&blocked, SIGTERM);
  sigset_t handled;
  sigemptyset(&handled);
  for (const int each : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE, SIGXFSZ, SIGCHLD}) {
    sigaddset(&handled, each);
  }
  ::posix_spawnattr_setsigmask(&attributes.value, &blocked);
  ::posix_spawnattr_setsigdefault(&attributes.value, &handled);
  const int group = plan.has_own_group ? POSIX_SPAWN_SETPGROUP : 0;
  ::posix_spawnattr_setflags(&attributes.value, static_cast<short>(POSIX_SPAWN_SETSIGMASK |
                                                                   POSIX_SPAWN_SETSIGDEF | group));
  std::vector<std::string> arguments = plan.arguments;
  std::vector<std::string> variables = plan.variables;
  pid_t process = 0;
  const int os_error = ::posix_spawn(&process, plan.path.c_str(), &actions.value, &attributes.value,
                                     pointers(arguments).data(), pointers(variables).data());
  if (os_error != 0) return fail("cannot start " + plan.path + ": " + std::strerror(os_error));
  return process;
}

std::string reap(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return "an unknown status";
  }
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                             : "status " + std::to_string(WEXITSTATUS(status));
}

std::vector<std::string> variables_without(std::span<const std::string_view> left_out) {
  std::vector<std::string> kept;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text(*each);
    const bool is_left_out = std::ranges::any_of(
        left_out, [text](std::string_view name) { return text.starts_with(name); });
    if (!is_left_out) kept.emplace_back(text);
  }
  return kept;
}

}  // namespace encore::net

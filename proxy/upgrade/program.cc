#include "proxy/upgrade/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace encore::upgrade {
namespace {

constexpr const char* kVariable = "ENCORE_UPGRADE_CHANNEL";
// In the new process, behind the standard ones.
constexpr int kChannelDescriptor = 3;
constexpr std::string_view kChannelText = "3";
constexpr const char* kSetVariable = "ENCORE_UPGRADE_CHANNEL=3";
// The process that systemd watches is another one from then on.
constexpr std::string_view kLeftOut[] = {
    "ENCORE_UPGRADE_CHANNEL=", "LISTEN_PID=", "LISTEN_FDS=", "LISTEN_FDNAMES=", "WATCHDOG_PID="};

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

std::vector<std::string> environment() {
  std::vector<std::string> kept;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text(*each);
    const bool is_left_out = std::ranges::any_of(
        kLeftOut, [text](std::string_view name) { return text.starts_with(name); });
    if (!is_left_out) kept.emplace_back(text);
  }
  kept.emplace_back(kSetVariable);
  return kept;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> found;
  for (std::string& text : texts) found.push_back(text.data());
  found.push_back(nullptr);
  return found;
}

}  // namespace

Program Program::of(int argc, char** argv) {
  Program program;
  for (int i = 0; i < argc; ++i) program.arguments.emplace_back(argv[i]);
  std::error_code error;
  const std::string first = argc > 0 ? argv[0] : "";
  std::filesystem::path path;
  if (first.find('/') != std::string::npos) {
    path = std::filesystem::absolute(first, error);
  }
  if (path.empty() || error || ::access(path.c_str(), X_OK) != 0) {
    path = std::filesystem::read_symlink("/proc/self/exe", error);
  }
  program.path = path.string();
  return program;
}

Result<pid_t> start(const Program& program, const Channel& channel) {
  Actions actions;
  // Also where the numbers are the same: then it is kept over the exec.
  ::posix_spawn_file_actions_adddup2(&actions.value, channel.descriptor(), kChannelDescriptor);
  ::posix_spawn_file_actions_addclosefrom_np(&actions.value, kChannelDescriptor + 1);
  Attributes attributes;
  sigset_t none;
  sigemptyset(&none);
  sigset_t handled;
  sigemptyset(&handled);
  for (const int each : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE, SIGXFSZ, SIGCHLD}) {
    sigaddset(&handled, each);
  }
  ::posix_spawnattr_setsigmask(&attributes.value, &none);
  ::posix_spawnattr_setsigdefault(&attributes.value, &handled);
  ::posix_spawnattr_setflags(&attributes.value, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> arguments = program.arguments;
  std::vector<std::string> variables = environment();
  pid_t process = 0;
  const int os_error =
      ::posix_spawn(&process, program.path.c_str(), &actions.value, &attributes.value,
                    pointers(arguments).data(), pointers(variables).data());
  if (os_error != 0) {
    return fail("cannot start " + program.path + ": " + std::strerror(os_error));
  }
  return process;
}

std::optional<Channel> take_inherited() {
  const char* const value = std::getenv(kVariable);
  if (value == nullptr) return std::nullopt;
  const bool is_ours = std::string_view(value) == kChannelText;
  ::unsetenv(kVariable);
  if (!is_ours) return std::nullopt;
  int kind = 0;
  socklen_t size = sizeof kind;
  // Somebody may have set the variable by hand.
  if (::getsockopt(kChannelDescriptor, SOL_SOCKET, SO_TYPE, &kind, &size) != 0 ||
      kind != SOCK_SEQPACKET) {
    return std::nullopt;
  }
  ::fcntl(kChannelDescriptor, F_SETFD, FD_CLOEXEC);
  return Channel(net::Socket(kChannelDescriptor));
}

std::string reap(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return "an unknown status";
  }
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                             : "status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace encore::upgrade

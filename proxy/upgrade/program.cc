#include "proxy/upgrade/program.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "proxy/net/child_process.h"

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
  std::vector<std::string> variables = net::variables_without(kLeftOut);
  variables.emplace_back(kSetVariable);
  return net::start_child({.path = program.path,
                           .arguments = program.arguments,
                           .variables = std::move(variables),
                           .descriptors = {{channel.descriptor(), kChannelDescriptor}},
                           .last_descriptor = kChannelDescriptor});
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

}  // namespace encore::upgrade

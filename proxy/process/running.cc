#include "proxy/process/running.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace encore::server {
namespace {

namespace fs = std::filesystem;

// A line of /proc/net/tcp: "0: 0100007F:0C38 00000000:0000 0A ... inode ...", the tenth is the
// inode.
void add_listeners(const char* table, std::uint16_t port, std::set<std::string>& inodes) {
  std::ifstream file(table);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
        timeout >> inode;
    constexpr const char* kListen = "0A";
    unsigned found = 0;
    const std::size_t colon = local.rfind(':');
    if (state != kListen || colon == std::string::npos) continue;
    std::from_chars(local.data() + colon + 1, local.data() + local.size(), found, 16);
    if (found == port) inodes.insert("socket:[" + inode + "]");
  }
}

// The program's file may have been replaced since it was started: "/usr/bin/encore (deleted)".
bool runs_encore(const fs::path& process) {
  std::error_code error;
  const std::string program = fs::read_symlink(process / "exe", error).filename().string();
  return program == "encore" || program == "encore (deleted)";
}

bool has_descriptor_of(const fs::path& process, const std::set<std::string>& inodes) {
  std::error_code error;
  for (fs::directory_iterator at(process / "fd", error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    if (inodes.contains(fs::read_symlink(at->path(), gone).string())) return true;
  }
  return false;
}

}  // namespace

bool is_encore(pid_t process) {
  return process != ::getpid() && runs_encore(fs::path("/proc") / std::to_string(process));
}

std::optional<pid_t> running_encore_on(std::uint16_t port) {
  std::set<std::string> inodes;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) add_listeners(table, port, inodes);
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    pid_t process = 0;
    const auto [stop, status] = std::from_chars(name.data(), name.data() + name.size(), process);
    if (status != std::errc() || stop != name.data() + name.size()) continue;
    if (process == ::getpid() || !runs_encore(at->path())) continue;
    if (has_descriptor_of(at->path(), inodes)) return process;
  }
  return std::nullopt;
}

}  // namespace encore::server

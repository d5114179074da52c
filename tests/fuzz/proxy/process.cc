#include "tests/fuzz/proxy/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/fuzz/proxy/accounts.h"
#include "tests/fuzz/proxy/epoll_loop.h"

namespace encore::proxyfuzz {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the admin listener's response, or the part that came within a second; empty: nothing.
std::string get(std::uint16_t port, const std::string& path) {
  const int descriptor = connect_to_loopback(port, 0);
  pollfd wait{.fd = descriptor, .events = POLLOUT, .revents = 0};
  std::string answer;
  if (poll(&wait, 1, 1000) == 1 && (wait.revents & POLLERR) == 0) {
    const std::string request =
        "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    (void)!::send(descriptor, request.data(), request.size(), MSG_NOSIGNAL);
    wait.events = POLLIN;
    std::array<char, 65536> bytes;
    while (poll(&wait, 1, 1000) == 1) {
      const ssize_t size = ::recv(descriptor, bytes.data(), bytes.size(), 0);
      if (size <= 0) break;
      answer.append(bytes.data(), static_cast<std::size_t>(size));
    }
  }
  ::close(descriptor);
  return answer;
}

bool is_ready(std::uint16_t port) {
  const std::string answer = get(port, "/readyz");
  return answer.size() > 12 && answer.substr(0, 12).ends_with("200");
}

}  // namespace

// The second one trusts a proxy, has lists, and says nothing of itself.
std::string Process::listeners(const Options& options, const World& world) const {
  const std::string mode = options.reverse ? "mode = \"reverse\"\n" : "mode = \"forward\"\n";
  std::string out = "[[listen]]\naddress = \"127.0.0.1:" + std::to_string(port_) + "\"\n" + mode;
  out += options.tls[0];
  out += "[[listen]]\naddress = \"127.0.0.1:" + std::to_string(second_port_) + "\"\n" + mode;
  out += options.tls[1];
  out +=
      "via = false\ncache_status = false\nforwarded = \"x-forwarded\"\n"
      "trusted_proxies = [\"127.0.0.2\"]\n";
  if (!world.denied_path.empty()) out += "deny_paths = [\"" + world.denied_path + "\"]\n";
  for (const std::string& method : world.allowed_methods) {
    out +=
        (&method == world.allowed_methods.data() ? "allow_methods = [\"" : ", \"") + method + "\"";
  }
  if (!world.allowed_methods.empty()) out += "]\n";
  return out;
}

// Small limits, so that what happens at them happens often.
std::string Process::make_config(const Options& options, const World& world, Random& random) const {
  const auto text = [&random](std::initializer_list<const char*> of) {
    return "\"" + std::string(random.pick(of)) + "\"\n";
  };
  const auto seconds = [](const Limit& limit) {
    return "\"" + std::to_string(limit.most_since(0, 0)) + "s\"\n";
  };
  std::string out = listeners(options, world) + options.upstream;
  // The identities of the second listener's clients are made up.
  out += "[forward]\nallow_clients = [\"127.0.0.0/8\", \"10.0.0.0/8\"]\n";
  out += "private_destinations = \"always\"\n";
  out += "[admin]\naddress = \"127.0.0.1:" + std::to_string(admin_port_) + "\"\n";
  out += "[workers]\ncount = " + std::to_string(random.pick({1, 2, 2, 3})) + "\n";
  // Most is let go by memory where a disk has it.
  const bool has_disk = random.percent(50);
  out += "[cache]\nmemory = ";
  out += has_disk ? text({"1MiB", "2MiB"}) : text({"2MiB", "8MiB", "64MiB"});
  out += "disk_life_min = " + text({"0s", "60s"});
  out += "disk_reinsert = " + std::to_string(random.pick({0, 50, 90})) + "\n";
  out += "shards = " + std::to_string(random.pick({1, 4, 16})) + "\n";
  out += std::string("collapse = ") + (random.percent(80) ? "true\n" : "false\n");
  out += "collapse_buffer = " + text({"1KiB", "16KiB", "1MiB"});
  out += "uncacheable_memory = " + text({"0s", "1s", "2m"});
  out += "stale_while_revalidate = " + seconds(world.stale_while_revalidate);
  out += "stale_if_error = " + seconds(world.stale_if_error);
  out += "heuristic_with_cookie = ";
  out += world.heuristic_with_cookie.most_since(0, 0) != 0 ? "true\n" : "false\n";
  out += "range_fetch_max = " + text({"1KiB", "32MiB"});
  out += "background_finish = " + text({"0B", "32MiB"});
  out += "variants_max = " + std::to_string(random.pick({2, 32})) + "\n";
  out += "eviction = " + text({"sieve", "sieve", "lru", "s3-fifo", "w-tinylfu"});
  out += "[admission]\npolicy = ";
  out += text({"second-hit", has_disk ? "probation" : "second-hit", "always", "probability"});
  if (has_disk) {
    out += "[[disk]]\npath = \"" + disk_path_ + "\"\nsize = " + text({"8MiB", "64MiB"});
    out += "segment = " + text({"512KiB", "1MiB"});
  }
  out += "[limits]\ntransfer_buffer = " + text({"16KiB", "256KiB"});
  out += "[timeouts]\npool_idle = \"2s\"\n";
  out += "[log]\nlevel = \"warn\"\naccess = ";
  if (random.percent(50)) return out + "\"\"\n";
  out += "\"" + log_path_ + "\"\nformat = '" + std::string(Accounts::kFormat) + "'\n";
  return out;
}

void Process::write_config(const World& world) {
  config_ = without_rules_ + world.rules.text({"127.0.0.1:" + std::to_string(port_),
                                               "127.0.0.1:" + std::to_string(second_port_)});
  std::ofstream(config_path_) << config_;
}

Process::Process(const Options& options, const World& world, Random& random)
    : port_(free_port()),
      second_port_(free_port()),
      admin_port_(free_port()),
      config_path_(options.directory + "/encore.toml"),
      output_path_(options.directory + "/output"),
      disk_path_(options.directory + "/disk"),
      log_path_(options.directory + "/access.log") {
  // Responses of an earlier round's origin are of no use in this one.
  ::unlink(disk_path_.c_str());
  ::unlink(log_path_.c_str());
  without_rules_ = make_config(options, world, random);
  write_config(world);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int output = ::open(output_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(output, 1);
    dup2(output, 2);
    const int input = ::open("/dev/null", O_RDONLY);
    dup2(input, 0);
    execl(options.program.c_str(), options.program.c_str(), "--config", config_path_.c_str(),
          nullptr);
    _exit(127);
  }
  const double give_up = now() + 60;
  while (!is_ready(admin_port_)) {
    if (!is_running() || now() > give_up) {
      std::fprintf(stderr, "the proxy does not start:\n%s%s\n", said().c_str(), config_.c_str());
      std::exit(2);
    }
    usleep(10000);
  }
}

Process::~Process() {
  if (ended_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, &status_, 0);
}

void Process::reload() {
  if (!is_running()) return;
  kill(pid_, SIGHUP);
  ++reloads_asked_;
}

std::uint64_t Process::reloads() const {
  return counted("encore_reloads_total", get(admin_port_, "/metrics"));
}

std::string Process::metrics() const { return get(admin_port_, "/metrics"); }

std::uint64_t Process::counted(const std::string& name, const std::string& page) {
  std::uint64_t sum = 0;
  const std::string begin = "\n" + name;
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
    const char next = page[at + begin.size()];
    if (next != ' ' && next != '{') continue;
    const std::size_t line_end = page.find('\n', at + 1);
    const std::size_t value = page.rfind(' ', line_end);
    sum += std::strtoull(page.c_str() + value + 1, nullptr, 10);
  }
  return sum;
}

bool Process::has_log() const { return config_.find("access = \"\"") == std::string::npos; }

std::string Process::log() const { return read_file(log_path_); }

bool Process::await_reloads(std::uint64_t wanted) const {
  const double give_up = now() + 5;
  while (reloads() < wanted) {
    if (now() > give_up) return false;
    usleep(2000);
  }
  return true;
}

bool Process::take_rules(const World& world) {
  // Two signals may have become one.
  if (!await_reloads(reloads_asked_)) reloads_asked_ = reloads();
  write_config(world);
  reload();
  return await_reloads(reloads_asked_) || !is_running();
}

bool Process::is_running() {
  if (!ended_ && waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
  return !ended_;
}

std::string Process::said() const {
  const std::string all = read_file(output_path_);
  constexpr std::size_t kMost = 12000;
  return all.size() <= kMost ? all : all.substr(0, kMost) + "...\n";
}

std::string Process::stop(double seconds) {
  if (is_running()) kill(pid_, SIGTERM);
  const double give_up = now() + seconds;
  while (is_running()) {
    if (now() > give_up) {
      kill(pid_, SIGKILL);
      waitpid(pid_, &status_, 0);
      ended_ = true;
      return "it did not end on SIGTERM\n" + said();
    }
    usleep(5000);
  }
  if (WIFSIGNALED(status_)) {
    return "it ended by signal " + std::to_string(WTERMSIG(status_)) + "\n" + said();
  }
  const std::string all = said();
  const bool reported =
      all.find("Sanitizer") != std::string::npos || all.find("runtime error:") != std::string::npos;
  if (WEXITSTATUS(status_) != 0 || reported) {
    return "it ended with status " + std::to_string(WEXITSTATUS(status_)) + "\n" + all;
  }
  return {};
}

std::size_t Process::descriptors() const {
  std::size_t count = 0;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/fd", error)) {
    if (!entry.path().empty()) ++count;
  }
  return count;
}

std::size_t Process::resident_bytes() const {
  std::istringstream text(read_file("/proc/" + std::to_string(pid_) + "/statm"));
  std::size_t all = 0;
  std::size_t resident = 0;
  text >> all >> resident;
  return resident * 4096;
}

}  // namespace encore::proxyfuzz

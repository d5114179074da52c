// encore_proxy_fuzz: a dozen clients and a random origin around one proxy, every answer checked.
//   encore_proxy_fuzz --program PROGRAM [--seed N] [--requests N] [--seconds S]
//                     [--mode forward|reverse|both] [--round N] [--keep-going]
//                     [--directory D]
// Ends with 0 and a summary, or with 1 and the first finding. --keep-going: goes on, and tells the
// first of each kind. A run is cut in rounds, each with a proxy of another configuration.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/proxy/client.h"
#include "tests/fuzz/proxy/epoll_loop.h"
#include "tests/fuzz/proxy/front.h"
#include "tests/fuzz/proxy/intruders.h"
#include "tests/fuzz/proxy/process.h"
#include "tests/fuzz/proxy/servers.h"

namespace encore::proxyfuzz {
namespace {

constexpr std::size_t kClients = 48;  // connections of the dozen
constexpr std::size_t kUrls = 150;
// No delay of the origin comes near it, and it lets go of the origin's silence besides.
constexpr double kHangSeconds = 30;
constexpr double kReloadSeconds = 0.7;
// The proxy is given 64 MiB at most for what it stores; a sanitizer's own memory comes on top.
constexpr std::size_t kResidentBytesMax = std::size_t{3} << 30;
// Metrics that are 0 when nobody asks any more.
constexpr std::array kGauges = {"encore_client_connections", "encore_transfers",
                                "encore_upgrades",           "encore_tunnels",
                                "encore_dns_lookups",        "encore_transfer_memory_bytes"};

struct Options {
  std::string program;
  std::string directory;
  std::string mode = "both";
  std::uint64_t seed = 1;
  std::uint64_t requests = 1000000;
  std::uint64_t round = 50000;
  double seconds = 0;
  bool keep_going = false;
};

struct Totals {
  std::map<std::string, std::uint64_t> counters;
  std::map<std::string, std::uint64_t> findings;
  std::uint64_t requests = 0;
  std::uint64_t rounds_passed = 0;
  std::uint64_t rounds_failed = 0;
  double started = now();
};

// Sends POST /purge for a URL now and then.
class Purger final : public Handler {
 public:
  Purger(Ring& ring, const Process& process)
      : ring_(ring), port_(process.admin_port()), random_(ring.world.seed(), 'p', 0) {
    schedule();
  }
  ~Purger() override {
    ring_.loop.cancel(timer_);
    disconnect();
  }
  bool is_idle() const { return url_ == nullptr; }
  void on_ready(std::uint32_t events) override {
    if ((events & EPOLLOUT) != 0 && !text_.empty()) {
      sent_ = now();
      (void)!::send(descriptor_, text_.data(), text_.size(), MSG_NOSIGNAL);
      text_.clear();
      ring_.loop.modify(descriptor_, EPOLLIN);
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
    std::array<char, 4096> bytes;
    const ssize_t size = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (size > 12 && std::string_view(bytes.data(), 12).ends_with("200")) {
      ring_.world.invalidate(*url_, query_, sent_, soft_);
      ring_.world.remember(*url_, [sent = sent_, done = now(), soft = soft_, query = query_] {
        return std::to_string(sent) + (soft ? " made stale" : " purged") + " ?" + query +
               ", done " + std::to_string(done);
      });
      ring_.world.count("purges");
    } else {
      ring_.world.report("purge", "a purge failed", nullptr,
                         std::string(bytes.data(), size > 0 ? static_cast<std::size_t>(size) : 0));
    }
    --url_->clients;
    url_ = nullptr;
    disconnect();
    schedule();
  }

 private:
  void schedule() {
    timer_ = ring_.loop.after(0.001 * static_cast<double>(random_.between(5, 60)), [this] {
      timer_ = {};
      begin();
    });
  }
  void begin() {
    if (ring_.requests_left == 0) return;
    if (ring_.paused) return schedule();
    url_ = &ring_.world.pick_url(random_);
    ++url_->clients;
    // Its query as a value in another's.
    query_ = random_.pick<std::string_view>({"", "", "id=1", "id=1&utm_a=1", "page=1", "id=2"});
    std::string target = "http://" + host_of(ring_, *url_) + url_->path;
    if (!query_.empty()) target += "%3F";
    for (const char c : query_) target += c == '&' ? "%26" : std::string(1, c);
    soft_ = random_.percent(30);
    text_ = "POST /purge?url=" + target + (soft_ ? "&soft=true" : "") +
            " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    descriptor_ = connect_to_loopback(port_, 0);
    ring_.loop.add(descriptor_, *this, EPOLLIN | EPOLLOUT);
  }
  void disconnect() {
    if (descriptor_ < 0) return;
    ring_.loop.remove(descriptor_);
    ::close(descriptor_);
    descriptor_ = -1;
  }

  Ring& ring_;
  std::uint16_t port_;
  Random random_;
  int descriptor_ = -1;
  std::string text_;
  Url* url_ = nullptr;
  std::string query_;
  double sent_ = 0;
  bool soft_ = false;
  Loop::Timer timer_{};
};

// The sides that speak TLS in a round.
struct TlsUse {
  std::array<bool, 2> listeners{};
  bool origin = false;
};

// Responses by https and by http are stored apart: of a reverse proxy both listeners have TLS or
// none.
TlsUse draw_tls(std::uint64_t seed, bool reverse) {
  Random random(seed, 'y', 1);
  TlsUse out;
  if (random.percent(40)) out.listeners = {true, true};
  if (!reverse && random.percent(50)) out.listeners[random.below(2)] = false;
  out.origin = reverse && random.percent(40);
  return out;
}

class Round {
 public:
  Round(const Options& options, Totals& totals, std::uint64_t number, bool reverse)
      : options_(options),
        totals_(totals),
        seed_(options.seed + number),
        reverse_(reverse),
        world_(seed_, reverse, kUrls),
        oracle_(world_),
        random_(seed_, 'g', 0),
        reloads_(seed_, 'n', 0),
        tls_(Random(seed_, 'y', 0)),
        has_tls_(draw_tls(seed_, reverse)),
        servers_(loop_, world_, random_, has_tls_.origin ? &tls_ : nullptr) {
    world_.on_finding = [this](const Finding& finding) { on_finding(finding); };
    world_.host = "127.0.0.1:" + std::to_string(servers_.port());
    if (!has_tls_.origin) world_.other_host = "localhost:" + std::to_string(servers_.living_port());
    world_.rules = RuleTable::draw(random_);
    for (Limit* const limit : {&world_.stale_while_revalidate, &world_.stale_if_error}) {
      limit->note(0, random_.pick<std::uint64_t>({0, 0, 1, 60}));
    }
    world_.heuristic_with_cookie.note(0, random_.percent(25) ? 1U : 0U);
    if (random_.percent(60)) world_.denied_path = random_.pick({"/u*7", "/u1*5", "*8"});
    if (random_.percent(40)) world_.allowed_methods = {"GET", "HEAD", "POST"};
  }

  // False where it is over.
  bool run(std::uint64_t requests, double until) {
    std::filesystem::create_directories(options_.directory);
    tls_.write_files(options_.directory);
    std::array<std::string, 2> listen_lines;
    for (std::size_t i = 0; i < listen_lines.size(); ++i) {
      if (has_tls_.listeners[i]) listen_lines[i] = tls_.listen_line();
    }
    Process process({.program = options_.program,
                     .directory = options_.directory,
                     .reverse = reverse_,
                     .upstream = servers_.text(random_),
                     .tls = listen_lines},
                    world_, random_);
    TwoListeners front(process);
    process_ = &process;
    config_ = process.config();
    const std::size_t descriptors = process.descriptors();
    Ring ring{.loop = loop_,
              .world = world_,
              .oracle = oracle_,
              .proxy_port = process.port(),
              .absolute = !reverse_,
              .hosts = {world_.host},
              .requests_left = requests,
              .front = &front,
              .tls = &tls_,
              .has_tls = has_tls_.listeners,
              .http2 = draw_http2(seed_)};
    std::optional<Accounts> accounts;
    if (process.has_log()) ring.accounts = &accounts.emplace(world_);
    world_.ask_readers_cut = [&process] {
      return Process::counted("encore_slow_readers_cut_total", process.metrics());
    };
    servers_.start();
    {
      std::vector<std::unique_ptr<AnyClient>> clients;
      for (std::size_t i = 0; i < kClients; ++i) clients.push_back(make_client(ring, i));
      const Purger purger(ring, process);
      std::optional<Intruders> intruders;
      if (has_tls_.listeners[0] || has_tls_.listeners[1]) intruders.emplace(ring);
      drive(ring, clients, purger, process, until);
    }
    world_.ask_readers_cut = nullptr;
    servers_.stop();
    totals_.requests += requests - ring.requests_left;
    if (!stopped_) look_for_leaks(process, descriptors);
    const std::string counted = stopped_ ? std::string() : metrics_at_rest(process);
    if (const std::string wrong = process.stop(60); !wrong.empty()) {
      world_.report("end of the proxy", wrong, nullptr, "");
    }
    if (!stopped_ && accounts) settle(*accounts, process, counted);
    for (const auto& [name, count] : world_.counters()) totals_.counters[name] += count;
    ++(told_ == 0 ? totals_.rounds_passed : totals_.rounds_failed);
    return !stopped_ || options_.keep_going;
  }

 private:
  // The same configuration again while requests are in progress, or other rules as soon as none is.
  void reload(Ring& ring, Process& process) {
    if (reloads_.percent(50)) {
      other_rules_wait_ = ring.paused = true;
      return;
    }
    process.reload();
    world_.count("reloads");
  }

  void take_other_rules(Ring& ring, Process& process) {
    world_.replace_rules(RuleTable::draw(reloads_));
    if (!process.take_rules(world_)) {
      world_.report("reload", "other rules are not taken", nullptr, process.config());
    }
    config_ = process.config();
    other_rules_wait_ = false;
    // Each worker has them from its next turn on.
    loop_.after(0.05, [&ring] { ring.paused = false; });
  }

  void drive(Ring& ring, std::vector<std::unique_ptr<AnyClient>>& clients, const Purger& purger,
             Process& process, double until) {
    double next_look = 0;
    double next_reload = now() + kReloadSeconds;
    double idle_since = now();
    while (!stopped_ && (ring.requests_left > 0 || ring.active > 0)) {
      loop_.turn();
      if (servers_.busy() != 0) idle_since = now();
      if (other_rules_wait_ && ring.active == 0 && purger.is_idle())
        take_other_rules(ring, process);
      if (now() < next_look) continue;
      next_look = now() + 0.2;
      if (now() > until) ring.requests_left = 0;
      if (!process.is_running()) {
        stopped_ = true;
        return;
      }
      if (process.resident_bytes() > kResidentBytesMax) {
        world_.report("memory", "the proxy has taken more than 3 GiB", nullptr, "");
        stopped_ = true;
        return;
      }
      if (now() >= next_reload) {
        next_reload = now() + kReloadSeconds;
        if (!ring.paused) reload(ring, process);
      }
      const bool busy = now() - idle_since < kHangSeconds / 2;
      for (const auto& client : clients) client->check_progress(busy, kHangSeconds);
    }
  }

  // When all clients have gone and idle connections are closed, the rest is a leak.
  void look_for_leaks(Process& process, std::size_t before) {
    const double give_up = now() + 20;
    while (process.is_running() && process.descriptors() > before + 2 && now() < give_up)
      loop_.turn();
    if (process.is_running() && process.descriptors() > before + 2) {
      world_.report("descriptors",
                    std::to_string(process.descriptors()) + " open, " + std::to_string(before) +
                        " at the start",
                    nullptr, "");
    }
    totals_.counters["resident MiB at the end, at most"] = std::max(
        totals_.counters["resident MiB at the end, at most"], process.resident_bytes() >> 20);
  }

  // Returns its metrics once all has ended, or after twenty seconds: the last descriptors may be
  // those of connections that end.
  std::string metrics_at_rest(Process& process) {
    const double give_up = now() + 20;
    std::string page = process.metrics();
    const auto is_at_rest = [&page](const char* name) { return Process::counted(name, page) == 0; };
    while (process.is_running() && !std::ranges::all_of(kGauges, is_at_rest) && now() < give_up) {
      loop_.turn();
      page = process.metrics();
    }
    return page;
  }

  // Each request is logged once, and counted as often; nobody asks any more.
  void settle(Accounts& accounts, const Process& process, const std::string& metrics) {
    accounts.take(process.log());
    const Accounts::Sums sums = accounts.settle();
    const auto same = [&](const char* name, std::uint64_t wanted) {
      const std::uint64_t value = Process::counted(name, metrics);
      if (value == wanted) return;
      world_.report("accounts",
                    std::string(name) + ": " + std::to_string(value) + " counted, and " +
                        std::to_string(wanted) + " should be",
                    nullptr, "");
    };
    same("encore_requests_total", sums.requests);
    same("encore_response_body_bytes_sum", sums.content);
    for (const char* const none : kGauges) same(none, 0);
  }

  // True if connections end because the proxy does: how it ended is the finding then.
  bool is_of_its_end(const Finding& finding) {
    static constexpr std::array<std::string_view, 4> kKinds = {"lost", "cut", "purge", "hang"};
    if (std::ranges::find(kKinds, finding.kind) == kKinds.end()) return false;
    const double give_up = now() + 0.3;
    while (process_->is_running() && now() < give_up) usleep(1000);
    return !process_->is_running();
  }

  void on_finding(const Finding& finding) {
    if (is_of_its_end(finding)) return;
    ++told_;
    const bool first = totals_.findings[finding.kind]++ == 0;
    if (!options_.keep_going) {
      if (stopped_) return;
      stopped_ = true;
    } else if (!first) {
      return;
    }
    std::printf(
        "=== FINDING %s, after %.1f s and %llu requests of earlier rounds; seed %llu, %s\n%s\n",
        finding.kind.c_str(), now() - totals_.started,
        static_cast<unsigned long long>(totals_.requests), static_cast<unsigned long long>(seed_),
        reverse_ ? "reverse" : "forward", finding.text.c_str());
    std::printf("--- its configuration\n%s", config_.c_str());
    std::printf("--- again: ./dev fuzz --proxy --seed %llu --mode %s --requests %llu\n\n",
                static_cast<unsigned long long>(seed_), reverse_ ? "reverse" : "forward",
                static_cast<unsigned long long>(options_.round));
    (void)std::fflush(stdout);
  }

  const Options& options_;
  Totals& totals_;
  std::uint64_t seed_;
  bool reverse_;
  EpollLoop loop_;
  World world_;
  Oracle oracle_;
  Random random_;
  Random reloads_;
  bool other_rules_wait_ = false;  // until no request is in progress
  TlsEnds tls_;
  TlsUse has_tls_;
  Servers servers_;
  std::string config_;
  Process* process_ = nullptr;
  std::uint64_t told_ = 0;
  bool stopped_ = false;
};

[[noreturn]] void usage() {
  std::fprintf(
      stderr,
      "usage: encore_proxy_fuzz --program PROGRAM [--seed N] [--requests N] [--seconds S]\n"
      "       [--mode forward|reverse|both] [--round N] [--keep-going]\n"
      "       [--directory D]\n");
  std::exit(2);
}

Options read_options(int argc, char** argv) {
  Options options;
  options.seed = std::random_device{}();
  options.directory = "/tmp/encore-proxy-fuzz-" + std::to_string(getpid());
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--keep-going") {
      options.keep_going = true;
      continue;
    }
    if (i + 1 == argc) usage();
    const std::string value = argv[++i];
    if (name == "--program") {
      options.program = value;
    } else if (name == "--directory") {
      options.directory = value;
    } else if (name == "--mode" && (value == "forward" || value == "reverse" || value == "both")) {
      options.mode = value;
    } else if (!number(value)) {
      usage();
    } else if (name == "--seed") {
      options.seed = static_cast<std::uint64_t>(*number(value));
    } else if (name == "--requests") {
      options.requests = static_cast<std::uint64_t>(*number(value));
    } else if (name == "--round") {
      options.round = static_cast<std::uint64_t>(*number(value));
    } else if (name == "--seconds") {
      options.seconds = static_cast<double>(*number(value));
    } else {
      usage();
    }
  }
  if (options.program.empty()) usage();
  return options;
}

int summarise(const Options& options, const Totals& totals) {
  const double seconds = now() - totals.started;
  std::printf("proxy fuzz: %llu requests in %.0f s (%.0f/s), seed %llu, mode %s\n",
              static_cast<unsigned long long>(totals.requests), seconds,
              static_cast<double>(totals.requests) / seconds,
              static_cast<unsigned long long>(options.seed), options.mode.c_str());
  for (const auto& [name, count] : totals.counters) {
    std::printf("  %-50s %10llu\n", name.c_str(), static_cast<unsigned long long>(count));
  }
  for (const auto& [kind, count] : totals.findings) {
    std::printf("  FINDINGS of kind %-33s %10llu\n", kind.c_str(),
                static_cast<unsigned long long>(count));
  }
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(totals.rounds_passed),
              static_cast<unsigned long long>(totals.rounds_failed));
  return totals.findings.empty() ? 0 : 1;
}

int run(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  Totals totals;
  const double until = options.seconds == 0 ? 1e18 : now() + options.seconds;
  std::uint64_t left = options.requests;
  for (std::uint64_t number = 0; left > 0 && now() < until; ++number) {
    const bool reverse = options.mode == "reverse" || (options.mode == "both" && number % 2 == 1);
    const std::uint64_t share = std::min(left, options.round);
    left -= share;
    Round round(options, totals, number, reverse);
    if (!round.run(share, until)) break;
  }
  std::filesystem::remove_all(options.directory);
  return summarise(options, totals);
}

}  // namespace
}  // namespace encore::proxyfuzz

int main(int argc, char** argv) { return encore::proxyfuzz::run(argc, argv); }

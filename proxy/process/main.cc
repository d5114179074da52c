// encore: the caching proxy.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <thread>

#include "config/derive.h"
#include "config/dump.h"
#include "config/load.h"
#include "proxy/net/signals.h"
#include "proxy/process/server.h"
#include "proxy/process/start_check.h"

namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

constexpr const char* kFooter =
    "Examples:\n"
    "  encore                                      forward proxy on 127.0.0.1:3128\n"
    "  encore --config /etc/encore.toml            as configured\n"
    "  encore --set cache.memory=1GiB --check-config\n"
    "  encore --config a.toml --dump-config        the whole configuration in force\n"
    "\n"
    "Signals: SIGTERM, SIGINT drain and end; SIGHUP reads the configuration again without\n"
    "dropping a connection; SIGUSR1 opens log.access again, after it was renamed (log.decisions\n"
    "is one file from start to end).\n"
    "Exit status: 0 ended as asked, 1 failed while running, 2 bad configuration or usage.\n";

// Connections need descriptors: as many as the system gives us.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

// A log on a full disk or beyond a limit of its size is an error of a write, not the end.
void ignore_file_size_signal() { std::signal(SIGXFSZ, SIG_IGN); }

// Everything that --check-config has to say; the exit status.
int check_config(const encore::config::Config& config, const encore::config::Places& places) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  std::fputs(encore::config::check_report(config, cores).c_str(), stdout);
  const auto check = encore::server::check_start(config);
  for (const std::string& note : check.notes) std::printf("note: %s\n", note.c_str());
  for (const auto& [key, what] : check.faults) {
    std::fprintf(stderr, "%s\n", encore::config::fault_text(places, key, what).c_str());
  }
  return check.faults.empty() ? 0 : kExitFailed;
}

int run(const encore::config::Sources& sources, const encore::config::Config& config) {
  // From here on an order to end is one to end in order, with status 0.
  encore::net::hold_signals({SIGTERM, SIGINT});
  raise_descriptor_limit();
  ignore_file_size_signal();
  auto server = encore::server::Server::create(
      config, [sources] { return encore::config::load_config(sources); });
  if (!server) {
    std::fprintf(stderr, "encore: %s\n", server.error().message.c_str());
    return kExitFailed;
  }
  (*server)->run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // Whoever starts us may send these at once. They wait until they can be obeyed.
  encore::net::hold_signals({SIGHUP, SIGUSR1});
  CLI::App app(
      "Encore: a caching HTTP proxy that stores an object only when it is asked for twice.",
      "encore");
  encore::config::Sources sources;
  bool check = false;
  bool dump = false;
  app.add_option("--config", sources.path, "Configuration file (TOML); without it, all defaults")
      ->type_name("FILE");
  app.add_option("--set", sources.sets, "Set a key after the file was read; may be repeated")
      ->type_name("section.key=value")
      ->take_all()
      ->allow_extra_args(false);
  app.add_flag(
      "--check-config", check,
      "Check the configuration and whether it can be started with, show what follows from it, end");
  app.add_flag("--dump-config", dump, "Write the whole configuration in force as TOML, end");
  app.set_version_flag("--version", "encore " ENCORE_VERSION);
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }

  encore::config::Places places;
  const auto config = encore::config::load_config(sources, &places);
  if (!config) {
    std::fprintf(stderr, "%s\n", config.error().message.c_str());
    return kExitUsage;
  }
  if (check) return check_config(*config, places);
  if (dump) {
    std::fputs(encore::config::dump_config(*config).c_str(), stdout);
    return 0;
  }
  return run(sources, *config);
}

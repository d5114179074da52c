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
#include "proxy/server/server.h"

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
    "dropping a connection; SIGUSR1 opens the logs again.\n"
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

int run(const encore::config::Sources& sources, const encore::config::Config& config) {
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
  app.add_flag("--check-config", check, "Check the configuration, show what follows from it, end");
  app.add_flag("--dump-config", dump, "Write the whole configuration in force as TOML, end");
  app.set_version_flag("--version", "encore " ENCORE_VERSION);
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }

  const auto config = encore::config::load_config(sources);
  if (!config) {
    std::fprintf(stderr, "%s\n", config.error().message.c_str());
    return kExitUsage;
  }
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  if (check) {
    std::fputs(encore::config::check_report(*config, cores).c_str(), stdout);
    return 0;
  }
  if (dump) {
    std::fputs(encore::config::dump_config(*config).c_str(), stdout);
    return 0;
  }
  return run(sources, *config);
}

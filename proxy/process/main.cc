// encore: the caching proxy.
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/cli/program.h"
#include "base/cli/usage_error.h"
#include "base/time.h"
#include "config/derive.h"
#include "config/dump.h"
#include "config/load.h"
#include "config/network.h"
#include "proxy/ca/cli/program.h"
#include "proxy/cli/program.h"
#include "proxy/disk/cli/program.h"
#include "proxy/disk/cli/wear.h"
#include "proxy/net/signals.h"
#include "proxy/process/disk_start.h"
#include "proxy/process/explain.h"
#include "proxy/process/server.h"
#include "proxy/process/start_check.h"
#include "proxy/process/token.h"
#include "proxy/upgrade/channel.h"
#include "proxy/upgrade/notify.h"
#include "proxy/upgrade/program.h"

namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

constexpr const char* kFooter =
    "Examples:\n"
    "  encore                                      forward proxy on 127.0.0.1:3128\n"
    "  encore --config /etc/encore.toml            with this configuration\n"
    "  encore --set cache.memory=1GiB --check-config\n"
    "  encore --config a.toml --dump-config        the whole configuration in force\n"
    "  encore status                               the state of the running proxy\n"
    "  encore upgrade                              replace the process without a failed request\n"
    "  encore purge --tag news                     remove cached responses with this tag\n"
    "  encore --config a.toml explain http://a.example/x.deb\n"
    "                                              what the running proxy would do, and why\n"
    "  encore --config b.toml --adopt-from http://10.0.0.1:3129\n"
    "                                              import the admission filter of 10.0.0.1\n"
    "  encore --config a.toml intercept list       clients that refused our certificate\n"
    "  encore disk stat /var/cache/encore/disk     contents of a disk: encore disk --help\n"
    "  encore ca create --out /etc/encore --host packages.example\n"
    "                                              to cache https: encore ca --help\n"
    "\n"
    "Signals: SIGTERM and SIGINT drain and exit, a second one exits immediately; SIGHUP reloads "
    "the\n"
    "configuration without dropping a connection; SIGUSR1 reopens log.access after a rotation\n"
    "(log.decisions is one file from start to end); SIGUSR2 replaces the process by a new one.\n"
    "Exit status: 0 ended on request, 1 failed at startup or while running, or a drain was cut\n"
    "short, 2 wrong configuration or usage. Commands: 0 done, 1 the proxy refused, 2 wrong\n"
    "configuration or usage, 3 no proxy answers.\n";

// Connections need descriptors: as many as the system gives us.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

// A log on a full disk or beyond a limit of its size is an error of a write, not the end.
void ignore_file_size_signal() { std::signal(SIGXFSZ, SIG_IGN); }

// Prints the bytes a day of each existing disk. A disk that cannot be read is reported by the check
// of a start.
void report_wear(const encore::config::Config& config) {
  const auto now = std::chrono::floor<std::chrono::seconds>(encore::wall_now().time_since_epoch());
  for (const encore::config::Disk& disk : config.disk) {
    const auto wear = encore::disk::look_at_wear(
        disk.path, disk.endurance_bytes, static_cast<encore::disk::WallSeconds>(now.count()));
    if (!wear || !*wear) continue;
    std::printf("disk wear             %s: %s\n", disk.path.c_str(), (*wear)->c_str());
  }
}

// Everything that --check-config has to say; the exit status.
int check_config(encore::config::Config config, const encore::config::SourceLocations& places) {
  encore::server::take_found_segments(config);
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  std::fputs(encore::config::check_report(config, cores).c_str(), stdout);
  report_wear(config);
  const auto check = encore::server::check_start(config);
  for (const std::string& note : check.notes) std::printf("note: %s\n", note.c_str());
  for (const auto& [key, what] : check.faults) {
    std::fprintf(stderr, "%s\n", encore::config::fault_text(places, key, what).c_str());
  }
  return check.faults.empty() ? 0 : kExitFailed;
}

using AdoptFrom = encore::server::StartOrders::AdoptFrom;

// Reads --adopt-from and --adopt-token-file; nothing if there is no peer.
encore::Result<std::optional<AdoptFrom>> read_neighbour(const std::optional<std::string>& url,
                                                        const std::string& token_file,
                                                        const encore::config::Config& config) {
  if (!url) {
    if (!token_file.empty()) return encore::fail("--adopt-token-file needs --adopt-from URL");
    return std::nullopt;
  }
  auto parsed = encore::config::parse_server_url(*url);
  if (!parsed) {
    return encore::fail("--adopt-from \"" + *url + "\": " + parsed.error().message +
                        "; accepted: http://host:port or https://host:port, with no path");
  }
  AdoptFrom from{.url = std::move(*parsed),
                 .token_file = token_file.empty() ? config.admin.token_file : token_file};
  if (from.token_file.empty()) {
    return encore::fail(
        "--adopt-from needs the token of the other proxy: --adopt-token-file or "
        "admin.token_file");
  }
  return from;
}

// Checks that the peer's token can be read. Returns the exit status.
int check_token(const std::optional<AdoptFrom>& from) {
  if (!from) return 0;
  const auto token = encore::server::Token::read(from->token_file);
  if (token) return 0;
  std::fprintf(stderr, "encore: %s\n", token.error().message.c_str());
  return kExitFailed;
}

// The exit status.
int show_explained(const encore::config::Config& config, const encore::server::Explained& asked) {
  const auto text = encore::server::explain(config, asked);
  if (!text) {
    std::fprintf(stderr, "encore: %s\n", text.error().message.c_str());
    return kExitUsage;
  }
  std::fputs(text->c_str(), stdout);
  return 0;
}

// Commands with a parser of their own, in the help; main() runs them where they come first.
void add_others(CLI::App& app) {
  app.add_subcommand("disk", "List, verify or measure the contents of a disk: encore disk --help")
      ->prefix_command();
  app.add_subcommand("ca", "Create, show or renew the authority of [intercept]: encore ca --help")
      ->prefix_command();
}

// The exit status where one of them does not come first; 0: none was given.
int check_others(const CLI::App& app) {
  for (const char* name : {"disk", "ca"}) {
    if (!app.got_subcommand(name)) continue;
    std::fprintf(stderr, "encore: \"%s\" must be the first argument (see encore %s --help)\n", name,
                 name);
    return kExitUsage;
  }
  return 0;
}

// Runs the command that was parsed. The exit status.
int operate(const encore::cli::OperatorCommands& commands, const encore::config::Sources& sources) {
  // They end commands, as other signals do.
  encore::net::release_signals({SIGHUP, SIGUSR1, SIGUSR2});
  errno = 0;
  const auto exit = commands.run(
      sources, {.out = std::cout, .err = std::cerr, .is_terminal = ::isatty(STDOUT_FILENO) == 1});
  return encore::check_written({"encore", std::cout, std::cerr}, static_cast<int>(exit));
}

// The operator who requested the upgrade learns there why it failed.
void tell_old_process(std::optional<encore::upgrade::Channel>& channel,
                      const encore::Error& error) {
  if (!channel) return;
  encore::upgrade::Message message{.type = encore::upgrade::MessageType::kFailed};
  constexpr std::size_t kTextMax = 4096;
  message.add(encore::upgrade::Field::kText, error.message.substr(0, kTextMax));
  (void)channel->send(message);
}

// The options of a proxy. Commands have their own.
struct Options {
  encore::config::Sources sources;
  bool check = false;
  bool dump = false;
  std::optional<std::string> adopt_url;
  std::string adopt_token_file;
  bool clear_disks = false;
  encore::server::Explained asked;  // by --url
};

// The options stay with the caller, for as long as the application.
void add_options(CLI::App& app, Options& options) {
  app.add_option("--config", options.sources.path,
                 "Configuration file (TOML); default: none, all keys have their defaults")
      ->type_name("FILE");
  app.add_option("--set", options.sources.sets, "Override a key of the file; may be repeated")
      ->type_name("section.key=value")
      ->take_all()
      ->allow_extra_args(false);
  app.add_flag("--check-config", options.check,
               "Check the configuration, print the derived values, and exit");
  app.add_option(
         "--adopt-from", options.adopt_url,
         "Import the admission filter of another node (its admin URL) before serving; warn on "
         "failure")
      ->type_name("URL");
  app.add_option("--adopt-token-file", options.adopt_token_file,
                 "Token of that node; default: admin.token_file")
      ->type_name("FILE");
  app.add_flag("--clear-disk", options.clear_disks,
               "Reinitialise all configured disks. Deletes their contents.");
  app.add_flag("--dump-config", options.dump,
               "Print the whole configuration in force as TOML, and exit");
  app.add_option("--url", options.asked.url,
                 "With --check-config: print the rule that applies to this URL, and its effect")
      ->type_name("URL");
}

int run(const encore::config::Sources& sources, const encore::config::Config& config,
        encore::server::StartOrders orders) {
  // From here on an order to end is one to end in order, with status 0.
  encore::net::hold_signals({SIGTERM, SIGINT});
  raise_descriptor_limit();
  ignore_file_size_signal();
  auto server = encore::server::Server::create(
      config, [sources] { return encore::config::load_config(sources); }, std::move(orders));
  if (!server) {
    std::fprintf(stderr, "encore: %s\n", server.error().message.c_str());
    return kExitFailed;
  }
  if ((*server)->run() == encore::server::Server::End::kCutShort) ::_exit(kExitFailed);
  return 0;
}

// Checks or prints the configuration, or runs the proxy. The exit status.
int check_or_run(const Options& options, encore::upgrade::Program program,
                 std::optional<encore::upgrade::Channel> channel) {
  encore::config::SourceLocations places;
  const auto config = encore::config::load_config(options.sources, &places);
  if (!config) {
    std::fprintf(stderr, "%s\n", config.error().message.c_str());
    tell_old_process(channel, config.error());
    return kExitUsage;
  }
  const auto adopt_from = read_neighbour(options.adopt_url, options.adopt_token_file, *config);
  if (!adopt_from && !options.dump) {
    std::fprintf(stderr, "encore: %s\n", adopt_from.error().message.c_str());
    return kExitUsage;
  }
  const encore::server::Explained& asked = options.asked;
  if (options.check) {
    const int status = std::max(check_config(*config, places), check_token(*adopt_from));
    return asked.url.empty() ? status : std::max(status, show_explained(*config, asked));
  }
  if (!asked.url.empty()) {
    std::fprintf(stderr, "encore: --url goes with --check-config\n");
    return kExitUsage;
  }
  if (options.dump) {
    std::fputs(encore::config::dump_config(*config).c_str(), stdout);
    return 0;
  }
  return run(options.sources, *config,
             {.adopt_from = *adopt_from,
              .clear_disks = options.clear_disks,
              .succession = {.channel = std::move(channel),
                             .program = std::move(program),
                             .manager = encore::upgrade::ServiceManager::of_environment()}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "disk") {
    return encore::disk::disk_main({argv + 1, argv + argc});
  }
  if (argc > 1 && std::string_view(argv[1]) == "ca") {
    return encore::ca::ca_main({argv + 1, argv + argc});
  }
  // The process that starts us may send these immediately. They wait until they can be obeyed.
  encore::net::hold_signals({SIGHUP, SIGUSR1, SIGUSR2});
  encore::upgrade::Program program = encore::upgrade::Program::of(argc, argv);
  std::optional<encore::upgrade::Channel> channel = encore::upgrade::take_inherited();
  CLI::App app("Encore: a caching HTTP proxy that stores an object on its second request.",
               "encore");
  Options options;
  add_options(app, options);
  const encore::cli::OperatorCommands commands(app);
  add_others(app);
  app.set_version_flag("--version", "encore " ENCORE_VERSION);
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "encore: %s\n", encore::usage_error(app, error).c_str());
    return kExitUsage;
  }
  if (const int status = check_others(app); status != 0) return status;
  if (commands.is_given() && !options.check && !options.dump) {
    return operate(commands, options.sources);
  }
  return check_or_run(options, std::move(program), std::move(channel));
}

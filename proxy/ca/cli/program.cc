#include "proxy/ca/cli/program.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <iostream>

#include "base/cli/output_file.h"
#include "base/cli/program.h"
#include "base/text.h"
#include "config/load.h"
#include "config/texts.h"
#include "proxy/ca/authority.h"
#include "proxy/ca/cli/files.h"
#include "proxy/ca/cli/install_lines.h"
#include "proxy/ca/making.h"

namespace encore::ca {
namespace {

constexpr int kDaysMax = 36500;

struct Create {
  std::string directory;
  std::vector<std::string> hosts;
  bool any_host = false;
  int days = 3650;
  std::string config;
};

struct Show {
  std::string certificate;
  bool install = false;
  std::string config;
};

struct Renew {
  std::string directory;
  int days = 3650;
};

void declare(CLI::App& app, Create& create) {
  app.add_option("--out", create.directory, "Write ca.crt and ca.key into this directory")
      ->type_name("DIR")
      ->required();
  app.add_option("--host", create.hosts,
                 "Host that the CA may sign for, with all names below it (also \"*.name\"); may be "
                 "repeated")
      ->type_name("NAME")
      ->take_all()
      ->allow_extra_args(false);
  app.add_flag("--any-host", create.any_host,
               "Let the CA, and anyone with its key, sign for any name");
  app.add_option("--days", create.days, "Validity in days")
      ->check(CLI::Range(1, kDaysMax))
      ->capture_default_str();
  app.add_option("--config", create.config, "Also sign for intercept.hosts of this configuration")
      ->type_name("FILE");
  app.footer(
      "Examples:\n  encore ca create --out /etc/encore --host packages.example --host "
      "registry.example\n  encore ca create --out /etc/encore --config /etc/encore.toml --days "
      "730\nThe key is readable by its owner only. Existing files are not overwritten.");
}

void declare(CLI::App& app, Show& show) {
  app.add_option("CERT", show.certificate, "Certificate file; default: that of --config");
  app.add_flag("--install", show.install, "Print the commands that install the certificate");
  app.add_option("--config", show.config, "Show intercept.ca_certificate of this configuration")
      ->type_name("FILE");
  app.footer(
      "Examples:\n"
      "  encore ca show /etc/encore/ca.crt\n"
      "  encore ca show --install /etc/encore/ca.crt");
}

void declare(CLI::App& app, Renew& renew) {
  app.add_option("DIR", renew.directory, "Directory of ca.crt and ca.key")->required();
  app.add_option("--days", renew.days, "Validity in days")
      ->check(CLI::Range(1, kDaysMax))
      ->capture_default_str();
  app.footer(
      "Example:\n  encore ca renew /etc/encore && systemctl reload encore\nKey, name and hosts "
      "stay. Install the new certificate on the clients before the old one expires.");
}

std::string date_of(WallTime time) {
  const auto seconds = static_cast<std::time_t>(
      std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count());
  std::tm broken{};
  ::gmtime_r(&seconds, &broken);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%d", &broken);
  return {text.data(), size};
}

std::string joined(const std::vector<std::string>& names, const char* between) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : between) + name;
  return text;
}

std::string listed(const std::vector<std::string>& names) { return joined(names, ", "); }

std::string validity(const Authority& authority, WallTime now) {
  const std::string text =
      date_of(authority.not_before()) + " .. " + date_of(authority.not_after());
  if (now < authority.not_before()) return text + ", not yet";
  if (now >= authority.not_after()) return text + ", no longer";
  const auto left = std::chrono::floor<std::chrono::days>(authority.not_after() - now).count();
  return text + ", " + std::to_string(left) + " days left";
}

void print(const Authority& authority, const std::string& file, const CaEnvironment& around) {
  const auto& names = authority.permitted();
  around.out << file << "\n"
             << "  name         " << authority.name() << "\n"
             << "  may sign for "
             << (names.empty() ? "any host" : listed(names) + ", and hosts below")
             << (authority.excludes_addresses() ? "; no address" : "") << "\n"
             << "  valid        " << validity(authority, around.now) << "\n"
             << "  SHA-256      " << authority.fingerprint() << "\n";
}

// The hosts that are named by both, each as a configuration would have it.
Result<std::vector<std::string>> hosts_of(const Create& create) {
  std::vector<std::string> hosts;
  for (const std::string& host : create.hosts) {
    auto checked = config::check_intercepted_host(host);
    if (!checked || *checked == "*") {
      return fail("--host \"" + host +
                  "\": " + (checked ? "is all of them" : checked.error().message) +
                  "; accepted: a name, as \"packages.example\"; --any-host for all");
    }
    hosts.push_back(std::move(*checked));
  }
  if (create.config.empty()) return hosts;
  const auto config = config::load_config({.path = create.config, .sets = {}});
  if (!config) return std::unexpected(config.error());
  const auto& named = config->intercept.hosts;
  if (std::ranges::find(named, "*") != named.end() && !create.any_host) {
    return fail(create.config + ": intercept.hosts has \"*\", which needs --any-host");
  }
  hosts.insert(hosts.end(), named.begin(), named.end());
  return hosts;
}

Result<void> run(const Create& create, const CaEnvironment& around) {
  auto hosts = hosts_of(create);
  if (!hosts) return std::unexpected(hosts.error());
  if (!create.hosts.empty() && create.any_host) {
    return fail("--host and --any-host exclude each other");
  }
  if (hosts->empty() && !create.any_host) {
    return fail("no host; add --host NAME, --config FILE with intercept.hosts, or --any-host");
  }
  const auto made = make_authority({.name = "encore on " + around.machine,
                                    .hosts = *hosts,
                                    .any_host = create.any_host,
                                    .now = around.now,
                                    .life = std::chrono::days(create.days)});
  if (!made) return std::unexpected(made.error());
  const auto authority = Authority::parse(made->certificate, made->key);
  if (!authority) return std::unexpected(authority.error());
  if (auto written = write_authority(create.directory, *made); !written) return written;
  const std::string certificate = certificate_file_in(create.directory);
  print(*authority, certificate, around);
  const auto whole = [](const std::string& file) {
    return std::filesystem::absolute(file).string();
  };
  around.out << "[intercept]\n"
             << "ca_certificate = \"" << whole(certificate) << "\"\n"
             << "ca_key = \"" << whole(key_file_in(create.directory)) << "\"\n"
             << (create.any_host ? std::string("hosts = [\"*\"]\nany_host = true\n")
                                 : "hosts = [\"" + joined(*hosts, "\", \"") + "\"]\n");
  return {};
}

Result<void> run(const Show& show, const CaEnvironment& around) {
  std::string file = show.certificate;
  if (file.empty() && !show.config.empty()) {
    const auto config = config::load_config({.path = show.config, .sets = {}});
    if (!config) return std::unexpected(config.error());
    file = config->intercept.ca_certificate;
  }
  if (file.empty()) {
    return fail("no certificate; add CERT, or --config FILE with intercept.ca_certificate");
  }
  const auto text = read_certificate_file(file);
  if (!text) return std::unexpected(text.error());
  const auto authority = Authority::parse_certificate(*text);
  if (!authority) return fail(file + ": " + authority.error().message);
  if (show.install) {
    around.out << install_lines(std::filesystem::absolute(file).string(), authority->permitted());
  } else {
    print(*authority, file, around);
  }
  return {};
}

Result<void> run(const Renew& renew, const CaEnvironment& around) {
  const std::string file = certificate_file_in(renew.directory);
  const auto authority = Authority::load(file, key_file_in(renew.directory));
  if (!authority) return std::unexpected(authority.error());
  const auto again = renew_certificate(*authority, around.now, std::chrono::days(renew.days));
  if (!again) return std::unexpected(again.error());
  if (auto written = replace_file(file, *again); !written) return written;
  const auto renewed = Authority::parse_certificate(*again);
  if (!renewed) return std::unexpected(renewed.error());
  print(*renewed, file, around);
  return {};
}

struct Parser {
  Parser() {
    root.require_subcommand(1);
    root.footer(
        "Example:\n  encore ca create --out /etc/encore --host packages.example\n"
        "exit codes: 0 done, 2 wrong usage, or failed");
    creates = root.add_subcommand("create", "Create a key and its certificate");
    shows = root.add_subcommand("show", "Print a certificate, or the commands that install it");
    renews = root.add_subcommand("renew", "Renew the certificate with the same key");
    declare(*creates, create);
    declare(*shows, show);
    declare(*renews, renew);
  }
  CLI::App root{"encore ca: the CA for intercepted hosts ([intercept])", "encore ca"};
  Create create;
  Show show;
  Renew renew;
  CLI::App* creates = nullptr;
  CLI::App* shows = nullptr;
  CLI::App* renews = nullptr;
};

}  // namespace

void with_parser(const std::function<void(const CLI::App&)>& look) {
  const Parser parser;
  look(parser.root);
}

int run_program(std::vector<std::string> words, const CaEnvironment& around) {
  Parser parser;
  const std::array<const CLI::App*, 3> apps = {parser.creates, parser.shows, parser.renews};
  const ProgramOutput output{"encore ca", around.out, around.err};
  if (const auto over = parse_command_line(parser.root, apps, std::move(words), output)) {
    return *over;
  }
  errno = 0;
  const bool creates = parser.creates->parsed();
  const bool shows = parser.shows->parsed();
  const Result<void> done = creates ? run(parser.create, around)
                            : shows ? run(parser.show, around)
                                    : run(parser.renew, around);
  if (done) return check_written(output, 0);
  around.out.flush();
  const std::string name = creates ? "create" : shows ? "show" : "renew";
  around.err << output.program << " " << name << ": " << done.error().message << "\n";
  return kExitTrouble;
}

int ca_main(std::vector<std::string> words) {
  begin_process("encore ca");
  std::ios::sync_with_stdio(false);
  words.erase(words.begin());
  std::array<char, 256> machine{};
  const bool named = ::gethostname(machine.data(), machine.size() - 1) == 0;
  return run_program(std::move(words), {.out = std::cout,
                                        .err = std::cerr,
                                        .machine = named ? machine.data() : "this machine",
                                        .now = wall_now()});
}

}  // namespace encore::ca

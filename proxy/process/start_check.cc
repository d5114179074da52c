#include "proxy/process/start_check.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/units.h"
#include "cache/kernel.h"
#include "config/derive.h"
#include "config/network.h"
#include "proxy/coding/make_encoder.h"
#include "proxy/intake/challenge_files.h"
#include "proxy/net/listener.h"
#include "proxy/net/listening.h"
#include "proxy/net/tls.h"
#include "proxy/observe/log_writer.h"
#include "proxy/process/disk_start.h"
#include "proxy/process/fleet_purges.h"
#include "proxy/process/proxy.h"
#include "proxy/process/running.h"
#include "proxy/process/state.h"
#include "proxy/process/token.h"
#include "proxy/settings/compression.h"
#include "proxy/settings/credentials.h"
#include "proxy/settings/names.h"
#include "proxy/settings/runtime.h"
#include "proxy/settings/tls_listeners.h"

namespace encore::server {
namespace {

class Checker {
 public:
  explicit Checker(const config::Config& config) : config_(config) {}

  void check_addresses() {
    for (std::size_t i = 0; i < config_.listen.size(); ++i) {
      const config::EndpointText& address = config_.listen[i].address;
      check_address("listen." + std::to_string(i) + ".address", address.text(), *address);
    }
    for (const config::OptionalEndpointText& admin : config_.admin.address) {
      if (*admin && !is_in_new_state(**admin)) {
        check_address("admin.address", admin.text(), **admin);
      }
    }
  }

  void check_token() {
    const std::string& file = config_.admin.token_file;
    if (!file.empty()) add("admin.token_file", Token::read(file));
  }

  // A start does not need the engine.
  void check_fleet() {
    if (!*config_.fleet.purges) return;
    const auto engine = engine_of(config_.fleet);
    add("fleet.password_file", engine);
    if (!engine) return;
    const auto reached = reach_engine(*engine);
    if (!reached) {
      result_.notes.push_back("fleet.purges: " + reached.error().message +
                              "; a start goes on without the engine and the other nodes' purges");
    }
  }

  void check_logs() {
    if (!config_.log.access.empty()) add("log.access", LogWriter::check(config_.log.access));
    if (!config_.log.decisions.empty()) {
      add("log.decisions", LogWriter::check(config_.log.decisions));
    }
  }

  void check_state() {
    const std::string& directory = config_.state.directory;
    if (directory.empty()) return;
    if (StateDirectory::is_taken(directory)) {
      result_.notes.push_back("state directory " + directory + " is in use by a running encore");
    }
    add("state.directory", StateDirectory::check(directory));
  }

  void check_disks() {
    const std::size_t faults_before = result_.faults.size();
    for (std::size_t i = 0; i < config_.disk.size(); ++i) {
      add("disk." + std::to_string(i) + ".path",
          check_disk(config_.disk[i], *config_.admission.seed));
    }
    if (result_.faults.size() == faults_before) add("disk", seed_of_disks(config_));
    if (result_.faults.size() != faults_before) return;
    auto emptied = disks_to_be_emptied(config_);
    if (emptied) {
      for (std::string& sentence : *emptied) result_.notes.push_back(std::move(sentence));
    }
    add("disk", emptied);
  }

  void check_certificates() {
    const std::size_t faults_before = result_.faults.size();
    for (std::size_t i = 0; i < config_.listen.size(); ++i) {
      const config::Listen& listen = config_.listen[i];
      const std::string section = "listen." + std::to_string(i);
      check_credentials(section + ".users_file", Credentials::load(listen.users_file, ""));
      check_credentials(section + ".tokens_file", Credentials::load("", listen.tokens_file));
      if (!listen.users_helper.empty()) {
        check_credentials(section + ".users_helper",
                          Credentials::load(listen.users_file, "", listen.users_helper));
      }
      if (!listen.tls.empty()) check_tls(section, listen);
    }
    const config::Upstream& upstream = config_.upstream;
    check_authorities("upstream.tls_ca_file", upstream.tls_ca_file, upstream.tls_verify);
    for (std::size_t i = 0; i < config_.origin.size(); ++i) {
      const config::Origin& origin = config_.origin[i];
      const bool tls = std::ranges::any_of(origin.servers,
                                           [](const config::ServerText& url) { return url->tls; });
      if (!tls || origin.tls_ca_file.empty()) continue;
      check_authorities("origin." + std::to_string(i) + ".tls_ca_file", origin.tls_ca_file,
                        origin.tls_verify && upstream.tls_verify);
    }
    const auto interception = Interception::create(config_.intercept, nullptr, wall_now());
    if (!interception) {
      const InterceptFault& fault = interception.error();
      result_.faults.push_back({std::string(fault.key), fault.message});
    }
    if (interception && *interception != nullptr) {
      const CertificateReport report =
          authority_report(config_.intercept, **interception, wall_now());
      if (is_renewal_due(report)) result_.notes.push_back(renewal_text(report));
    }
    check_error_pages();
    check_challenges();
    // Everything else that follows from the config.
    if (result_.faults.size() == faults_before) add("", Runtime::create(config_, {}, {}));
  }

  // An ACME client may make it later.
  void check_challenges() {
    const auto usable = check_challenge_directory(config_.acme.challenge_directory);
    if (!usable) result_.notes.push_back(usable.error().message);
  }

  void check_error_pages() {
    const auto pages = ErrorPages::read(config_.http.error_pages);
    add("http.error_pages", pages);
    if (!pages) return;
    for (const std::string& name : pages->misnamed()) {
      result_.notes.push_back("http.error_pages: " + name +
                              " is not used; accepted: names as 404.html, 503.json, 4xx.txt or "
                              "5xx.html");
    }
  }

  // An encoder for which there is no room at all is never made.
  void check_compression() {
    if (config_.compression.codings.empty()) return;
    const Compression compression(config_.compression);
    for (const coding::Coding coding : compression.offered()) {
      const std::uint64_t needed = coding::encoder_bytes_max(coding, compression.level(coding));
      if (needed <= compression.memory_bytes()) continue;
      result_.notes.push_back("compression.memory is " + format_bytes(compression.memory_bytes()) +
                              ": nothing is sent in " + std::string(coding::to_string(coding)) +
                              ", which needs " + format_bytes(needed) +
                              " per response in progress");
    }
  }

  void check_memory() {
    add("cache.memory", store::make_memory_store({.limit_bytes = store_limit(config_)}));
    const auto options = config::kernel_options(config_);
    if (options) {
      add("admission.capacity", cache::Kernel::create(*options, {}, monotonic_now()));
    } else {
      add("admission.capacity", options);
    }
  }

  StartCheck take() && { return std::move(result_); }

 private:
  template <typename T>
  void add(std::string key, const Result<T>& outcome) {
    if (!outcome) result_.faults.push_back({std::move(key), outcome.error().message});
  }

  // A start makes the directory first.
  bool is_in_new_state(const config::Endpoint& endpoint) const {
    const std::string& directory = config_.state.directory;
    std::error_code ignored;
    return !directory.empty() && endpoint.socket == config::admin_socket_in(directory) &&
           !std::filesystem::exists(directory, ignored);
  }

  void check_address(std::string key, const std::string& text, const config::Endpoint& endpoint) {
    if (!endpoint.socket.empty()) {
      check_socket_file(std::move(key), text, endpoint.socket);
      return;
    }
    const net::Address address = to_address(endpoint);
    const auto unused = net::Listener::check_unused(address);
    if (unused) return;
    // An address that the machine has not is nobody's, even if something listens on that port of
    // another.
    net::Address elsewhere = address;
    elsewhere.set_port(0);
    const bool is_ours = net::Listener::check_unused(elsewhere).has_value();
    if (const auto process = running_encore_on(address.port()); is_ours && process) {
      result_.notes.push_back(text + " is in use by a running encore (process " +
                              std::to_string(*process) + ")");
      return;
    }
    add(std::move(key), unused);
  }

  void check_socket_file(std::string key, const std::string& text, const std::string& file) {
    const auto unused = net::check_unix_unused(file);
    if (unused) return;
    const auto process = net::unix_listener(file);
    if (process && is_encore(*process)) {
      result_.notes.push_back(text + " is in use by a running encore (process " +
                              std::to_string(*process) + ")");
      return;
    }
    add(std::move(key), unused);
  }

  void check_credentials(std::string key,
                         const Result<std::shared_ptr<const Credentials>>& loaded) {
    add(std::move(key), loaded);
    if (!loaded) return;
    const std::vector<std::string>& warnings = (*loaded)->warnings();
    result_.notes.insert(result_.notes.end(), warnings.begin(), warnings.end());
  }

  // Each file for itself, so that all that is wrong is said.
  void check_tls(const std::string& section, const config::Listen& listen) {
    const auto tickets = net::TlsTickets::create(monotonic_now());
    if (!tickets) return add(section + ".tls", tickets);
    if (!listen.tls_ticket_file.empty()) {
      add(section + ".tls_ticket_file", net::TlsTickets::read(listen.tls_ticket_file));
    }
    if (!listen.tls_client_ca.empty()) {
      check_authorities(section + ".tls_client_ca", listen.tls_client_ca, true);
    }
    for (const config::TlsPairText& pair : listen.tls) {
      config::Listen only;
      only.tls = {pair};
      auto server =
          TlsListeners::make(only, {.names = stand_in_names(config_, listen), .tickets = *tickets});
      add(section + ".tls", server);
      if (!server) continue;
      for (const CertificateReport& each : TlsListeners::reports(listen, **server, wall_now())) {
        if (each.is_stand_in) {
          result_.notes.push_back("listen " + each.listener + ": " + stand_in_text(each));
        } else if (is_renewal_due(each)) {
          result_.notes.push_back("listen " + each.listener + ": " + renewal_text(each));
        }
      }
    }
  }

  void check_authorities(std::string key, const std::string& file, bool verify) {
    add(std::move(key), net::TlsContext::client({.ca_file = file, .verify_peer = verify}));
  }

  const config::Config& config_;
  StartCheck result_;
};

}  // namespace

StartCheck check_start(const config::Config& config) {
  Checker checker(config);
  checker.check_addresses();
  checker.check_token();
  checker.check_fleet();
  checker.check_logs();
  checker.check_state();
  checker.check_disks();
  checker.check_certificates();
  checker.check_compression();
  checker.check_memory();
  return std::move(checker).take();
}

}  // namespace encore::server

#include "proxy/settings/tls_listeners.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace encore::server {
namespace {

net::TlsServer::ClientVerify verify_of(config::ClientVerify verify) {
  switch (verify) {
    case config::ClientVerify::kOff:
      return net::TlsServer::ClientVerify::kOff;
    case config::ClientVerify::kRequest:
      return net::TlsServer::ClientVerify::kRequest;
    case config::ClientVerify::kRequire:
      return net::TlsServer::ClientVerify::kRequire;
  }
  return net::TlsServer::ClientVerify::kRequire;
}

// At most so many names are in a self-signed certificate: clients bound its size.
constexpr std::size_t kStandInNamesMax = 100;

bool is_dns_name(std::string_view host) {
  const std::string_view rest = host.starts_with("*.") ? host.substr(2) : host;
  const bool plain = std::ranges::all_of(rest, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
  });
  // The last label of an address is a number.
  return plain && !rest.empty() && rest.back() != '.' && (rest.back() < '0' || rest.back() > '9');
}

net::TlsServer::Options options_of(const config::Listen& listen,
                                   const std::vector<std::string>& names,
                                   std::shared_ptr<net::TlsTickets> tickets) {
  net::TlsServer::Options options{
      .refuse_unknown_name = listen.tls_unknown_name == config::UnknownName::kRefuse,
      .only_tls13 = listen.tls_min_version == config::TlsVersion::k13,
      .alpn = listen.tls_alpn,
      .client_ca_file = listen.tls_client_ca,
      .client_verify = verify_of(listen.tls_client_verify),
      .tickets = std::move(tickets),
      .now = wall_now()};
  // A peer that understands the one understands the other (RFC 9112 2.5).
  if (std::ranges::count(options.alpn, "http/1.1") != 0 &&
      std::ranges::count(options.alpn, "http/1.0") == 0) {
    options.alpn.emplace_back("http/1.0");
  }
  if (listen.http2 && !options.alpn.empty() && std::ranges::count(options.alpn, "h2") == 0) {
    options.alpn.insert(options.alpn.begin(), "h2");
  }
  for (const config::TlsPairText& pair : listen.tls) {
    net::TlsServer::Pair& added = options.pairs.emplace_back();
    added.certificate_file = pair->certificate;
    added.key_file = pair->key;
    added.ocsp_file = pair->ocsp;
    if (pair->missing == config::MissingPair::kSelfSigned) added.stand_in_names = names;
  }
  return options;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

}  // namespace

std::vector<std::string> stand_in_names(const config::Config& config,
                                        const config::Listen& listen) {
  std::vector<std::string> names;
  for (const config::Origin& origin : config.origin) {
    if (listen.mode != config::Mode::kReverse || names.size() == kStandInNamesMax) break;
    const bool is_new = std::ranges::count(names, origin.host) == 0;
    if (is_new && is_dns_name(origin.host)) names.push_back(origin.host);
  }
  if (names.empty()) names.emplace_back("localhost");
  return names;
}

Result<std::shared_ptr<const net::TlsServer>> TlsListeners::make(const config::Listen& listen,
                                                                 const ServerParts& parts) {
  net::TlsServer::Options options = options_of(listen, parts.names, parts.tickets);
  if (!listen.tls_ticket_file.empty()) {
    auto shared = net::TlsTickets::read(listen.tls_ticket_file);
    if (!shared) return std::unexpected(shared.error());
    options.tickets = std::move(*shared);
  }
  return net::TlsServer::create(options, parts.before);
}

Result<TlsListeners> TlsListeners::create(const config::Config& config, const TlsListeners* before,
                                          std::shared_ptr<net::TlsTickets> tickets) {
  TlsListeners made;
  made.tickets_ = std::move(tickets);
  if (before != nullptr) made.tickets_ = before->tickets_;
  std::vector<std::shared_ptr<const net::TlsServer>> known;
  if (before != nullptr) known = before->servers_;
  std::erase(known, nullptr);
  for (std::size_t i = 0; i < config.listen.size(); ++i) {
    const config::Listen& listen = config.listen[i];
    if (listen.tls.empty()) continue;
    if (made.tickets_ == nullptr) {
      auto fresh = net::TlsTickets::create(monotonic_now());
      if (!fresh) return std::unexpected(fresh.error());
      made.tickets_ = std::move(*fresh);
    }
    auto server =
        make(listen,
             {.names = stand_in_names(config, listen), .tickets = made.tickets_, .before = known});
    if (!server) return fail("listen " + listen.address.text() + ": " + server.error().message);
    made.servers_.resize(i + 1);
    made.servers_[i] = std::move(*server);
  }
  return made;
}

TlsListeners::Renewal TlsListeners::renew(const config::Config& config,
                                          const std::vector<bool>& is_due) const {
  Renewal renewal;
  TlsListeners next = *this;
  bool has_changed = false;
  for (std::size_t i = 0; i < servers_.size() && i < config.listen.size(); ++i) {
    if (servers_[i] == nullptr || !is_due[i]) continue;
    const config::Listen& listen = config.listen[i];
    const std::string where = "listen " + listen.address.text() + ": ";
    auto found = servers_[i]->renew(options_of(listen, {}, nullptr));
    std::vector<std::string>& before = next.faults_[i];
    before.resize(found.faults.size());
    for (std::size_t pair = 0; pair < found.faults.size(); ++pair) {
      const std::string& fault = found.faults[pair];
      if (fault.empty() || fault == before[pair]) continue;
      renewal.faults.push_back(where + fault + "; the certificate in use stays");
    }
    const bool is_new = found.faults != before;
    before = std::move(found.faults);
    if (found.server != nullptr) next.servers_[i] = std::move(found.server);
    for (const std::size_t pair : found.taken) {
      const net::TlsServer::Certificate& taken = next.servers_[i]->certificates()[pair];
      renewal.taken.push_back(where + "certificate \"" + taken.file + "\" for " +
                              joined(taken.names) + " is renewed");
    }
    has_changed |= is_new || !found.taken.empty();
  }
  if (has_changed) renewal.listeners = std::make_shared<const TlsListeners>(std::move(next));
  return renewal;
}

std::vector<CertificateReport> TlsListeners::reports(const config::Listen& listen,
                                                     const net::TlsServer& server, WallTime now) {
  std::vector<CertificateReport> known;
  for (const net::TlsServer::Certificate& each : server.certificates()) {
    if (std::ranges::count(known, each.file, &CertificateReport::file) != 0) continue;
    CertificateReport& report = known.emplace_back();
    report.listener = listen.address.text();
    report.file = each.file;
    report.left = each.not_after - now;
    report.life = each.not_after - each.not_before;
    report.names = joined(each.names);
    report.is_stand_in = each.is_stand_in;
  }
  return known;
}

std::vector<CertificateReport> TlsListeners::reports(const config::Config& config,
                                                     std::size_t listener, WallTime now) const {
  const net::TlsServer& server = *servers_[listener];
  std::vector<CertificateReport> known = reports(config.listen[listener], server, now);
  const auto found = faults_.find(listener);
  if (found == faults_.end()) return known;
  for (std::size_t pair = 0; pair < found->second.size(); ++pair) {
    if (found->second[pair].empty()) continue;
    const auto report =
        std::ranges::find(known, server.certificates()[pair].file, &CertificateReport::file);
    if (report != known.end()) report->is_refused = true;
  }
  return known;
}

std::vector<CertificateReport> known_certificates(const config::Config& config,
                                                  const TlsListeners& listeners, WallTime now) {
  std::vector<CertificateReport> known;
  for (std::size_t i = 0; i < config.listen.size(); ++i) {
    if (listeners.of(i) != nullptr) {
      std::ranges::move(listeners.reports(config, i, now), std::back_inserter(known));
    }
  }
  return known;
}

bool is_renewal_due(const CertificateReport& certificate) {
  constexpr int kShareOfLife = 3;
  constexpr Nanoseconds kMonth = std::chrono::hours(30 * 24);
  if (certificate.left >= kMonth) return false;
  return certificate.life.count() == 0 || certificate.left < certificate.life / kShareOfLife;
}

std::string renewal_text(const CertificateReport& certificate) {
  const std::string what = "certificate \"" + certificate.file + "\" for " + certificate.names;
  if (certificate.left.count() <= 0) return what + " has expired";
  const auto hours = std::chrono::floor<std::chrono::hours>(certificate.left).count();
  constexpr std::int64_t kHoursOfDay = 24;
  return what + " ends in " +
         (hours < 2 * kHoursOfDay ? std::to_string(hours) + " hours"
                                  : std::to_string(hours / kHoursOfDay) + " days");
}

std::string stand_in_text(const CertificateReport& certificate) {
  return "certificate \"" + certificate.file + "\" or its key does not exist: clients get a " +
         "self-signed one for " + certificate.names + " until both do";
}

}  // namespace encore::server

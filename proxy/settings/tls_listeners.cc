#include "proxy/settings/tls_listeners.h"

#include <algorithm>
#include <iterator>
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

}  // namespace

Result<std::shared_ptr<const net::TlsServer>> TlsListeners::make(
    const config::Listen& listen, const std::shared_ptr<net::TlsTickets>& tickets) {
  net::TlsServer::Options options{
      .refuse_unknown_name = listen.tls_unknown_name == config::UnknownName::kRefuse,
      .only_tls13 = listen.tls_min_version == config::TlsVersion::k13,
      .alpn = listen.tls_alpn,
      .client_ca_file = listen.tls_client_ca,
      .client_verify = verify_of(listen.tls_client_verify),
      .tickets = tickets,
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
    options.pairs.push_back({pair->certificate, pair->key, pair->ocsp});
  }
  if (!listen.tls_ticket_file.empty()) {
    auto shared = net::TlsTickets::read(listen.tls_ticket_file);
    if (!shared) return std::unexpected(shared.error());
    options.tickets = std::move(*shared);
  }
  return net::TlsServer::create(options);
}

Result<TlsListeners> TlsListeners::create(const config::Config& config, const TlsListeners* before,
                                          std::shared_ptr<net::TlsTickets> tickets) {
  TlsListeners made;
  made.tickets_ = std::move(tickets);
  if (before != nullptr) made.tickets_ = before->tickets_;
  for (std::size_t i = 0; i < config.listen.size(); ++i) {
    const config::Listen& listen = config.listen[i];
    if (listen.tls.empty()) continue;
    if (made.tickets_ == nullptr) {
      auto fresh = net::TlsTickets::create(monotonic_now());
      if (!fresh) return std::unexpected(fresh.error());
      made.tickets_ = std::move(*fresh);
    }
    auto server = make(listen, made.tickets_);
    if (!server) return fail("listen " + listen.address.text() + ": " + server.error().message);
    made.servers_.resize(i + 1);
    made.servers_[i] = std::move(*server);
  }
  return made;
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
    for (const std::string& name : each.names) {
      report.names += (report.names.empty() ? "" : " ") + name;
    }
  }
  return known;
}

std::vector<CertificateReport> known_certificates(const config::Config& config,
                                                  const TlsListeners& listeners, WallTime now) {
  std::vector<CertificateReport> known;
  for (std::size_t i = 0; i < config.listen.size(); ++i) {
    if (const auto& server = listeners.of(i); server != nullptr) {
      std::ranges::move(TlsListeners::reports(config.listen[i], *server, now),
                        std::back_inserter(known));
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

}  // namespace encore::server

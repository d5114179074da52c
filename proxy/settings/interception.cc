#include "proxy/settings/interception.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <utility>

#include "base/units.h"
#include "proxy/net/tls_chain.h"
#include "proxy/observe/log.h"

namespace encore::server {
namespace {

// A client that cannot go on tries again, if at all, within this.
constexpr Nanoseconds kDoubtMemory = std::chrono::minutes(1);

std::string date_of(WallTime time) {
  const std::chrono::sys_seconds seconds(
      std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()));
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Result<void> check(const config::Intercept& intercept, const ca::Authority& authority,
                   WallTime now) {
  const std::string& file = intercept.ca_certificate;
  if (!authority.is_valid(now)) {
    return fail(file + ": is good from " + date_of(authority.not_before()) + " to " +
                date_of(authority.not_after()) + "; accepted: one that is good now, as by " +
                "encore ca renew");
  }
  for (const std::string& host : intercept.hosts) {
    const bool permitted = host == "*" ? authority.permitted().empty() : authority.permits(host);
    if (permitted) continue;
    return fail(file + ": may not sign for \"" + host + "\" of intercept.hosts; accepted: " +
                listed(authority.permitted()) + ", and hosts below");
  }
  return {};
}

std::unexpected<InterceptFault> at_certificate(const Error& error) {
  return std::unexpected(InterceptFault{"intercept.ca_certificate", error.message});
}

}  // namespace

InterceptUse::InterceptUse(std::shared_ptr<ClientHosts> used, const net::Address& client,
                           std::string_view host, MonotonicTime now, Nanoseconds memory)
    : used_(std::move(used)),
      client_(client),
      host_(host),
      latest_(used_->open(client_, host_, now, memory)) {}

InterceptUse::~InterceptUse() {
  if (latest_ != nullptr) used_->close(client_, host_);
}

Interception::Interception(const config::Intercept& intercept, std::shared_ptr<ca::LeafIssuer> mint,
                           Servers servers, std::vector<std::string> chain,
                           std::shared_ptr<Rejections> rejected, std::shared_ptr<ClientHosts> used,
                           std::shared_ptr<ClientHosts> doubted)
    : intercept_(intercept),
      rules_(intercept),
      mint_(std::move(mint)),
      servers_(std::move(servers)),
      chain_(std::move(chain)),
      rejected_(std::move(rejected)),
      used_(std::move(used)),
      doubted_(std::move(doubted)) {}

Interception::Made Interception::create(const config::Intercept& intercept,
                                        const Interception* before, WallTime now) {
  if (!intercept.is_on()) return nullptr;
  auto authority = ca::Authority::load_certificate(intercept.ca_certificate);
  if (!authority) return at_certificate(authority.error());
  if (auto key = authority->load_key(intercept.ca_key); !key) {
    return std::unexpected(InterceptFault{"intercept.ca_key", key.error().message});
  }
  if (auto good = check(intercept, *authority, now); !good) return at_certificate(good.error());
  auto chain = net::issuing_chain(intercept.ca_certificate, now);
  if (!chain) return at_certificate(chain.error());
  // Refusals are remembered unless `reject_memory` gets shorter: an operator can forget them so.
  const bool remembers =
      before != nullptr && before->intercept_.reject_memory <= intercept.reject_memory;
  auto rejected = remembers ? before->rejected_ : std::make_shared<Rejections>();
  // The same authority: what it has signed, and what clients hold by it, stays good.
  if (before != nullptr && before->authority().fingerprint() == authority->fingerprint() &&
      before->chain_ == *chain) {
    return std::shared_ptr<const Interception>(
        new Interception(intercept, before->mint_, before->servers_, before->chain_,
                         std::move(rejected), before->used_, before->doubted_));
  }
  auto mint = ca::LeafIssuer::create(std::move(*authority));
  if (!mint) return at_certificate(mint.error());
  auto tickets = net::TlsTickets::create(monotonic_now());
  if (!tickets) return at_certificate(tickets.error());
  // The protocols are those that InterceptRules::at_hello accepts.
  const auto make_server = [&](std::vector<std::string> protocols) {
    return net::TlsServer::create_for(
        {.alpn = std::move(protocols), .tickets = *tickets, .now = now}, *(*mint)->key(), *chain);
  };
  auto http1 = make_server({"http/1.1", "http/1.0"});
  auto http2 = make_server({"h2", "http/1.1", "http/1.0"});
  if (!http1) return at_certificate(http1.error());
  if (!http2) return at_certificate(http2.error());
  Servers servers{.http1 = std::move(*http1), .http2 = std::move(*http2)};
  return std::shared_ptr<const Interception>(new Interception(
      intercept, std::move(*mint), std::move(servers), std::move(*chain), std::move(rejected),
      std::make_shared<ClientHosts>(), std::make_shared<ClientHosts>()));
}

Splice Interception::at_connect(const net::Address& client, std::string_view host,
                                std::uint16_t port, bool is_own, MonotonicTime now) const {
  const bool remembers = intercept_.on_client_reject == config::ClientReject::kSplice;
  return rules_.at_connect({.host = host,
                            .port = port,
                            .is_own = is_own,
                            .is_rejected = remembers && rejected_->is_paused(client, host, now)});
}

net::TlsSessionPointer Interception::session(std::string_view host, InterceptHttp2 http2,
                                             WallTime now) const {
  const auto leaf = mint_->leaf(host, now);
  const net::TlsServer& server = http2 == InterceptHttp2::kOn ? *servers_.http2 : *servers_.http1;
  return leaf == nullptr ? nullptr : server.session_showing(leaf->certificate);
}

void Interception::note_reject(const net::Address& client, std::string_view host,
                               MonotonicTime now) const {
  const auto pause = rejected_->note(client, host, now,
                                     {.after = intercept_.reject_after,
                                      .first = intercept_.reject_first,
                                      .longest = intercept_.reject_memory});
  if (!pause) return;
  const bool splices = intercept_.on_client_reject == config::ClientReject::kSplice;
  log::info("{} does not accept our certificate for {}, or sends no request after it: {}",
            client.ip_string(), host,
            splices ? "passes unread for " + format_duration(*pause)
                    : "its connections fail (on_client_reject)");
}

bool Interception::note_doubt(const net::Address& client, std::string_view host,
                              MonotonicTime started, MonotonicTime now) const {
  const auto before = doubted_->noted_at(client, host, now);
  doubted_->note(client, host, now, kDoubtMemory);
  return before && *before < started;
}

std::shared_ptr<const InterceptUse> Interception::use(const net::Address& client,
                                                      std::string_view host,
                                                      MonotonicTime now) const {
  return std::make_shared<const InterceptUse>(used_, client, host, now, intercept_.reject_memory);
}

bool Interception::is_in_use(const net::Address& client, std::string_view host) const {
  return used_->is_open(client, host);
}

std::optional<MonotonicTime> Interception::last_use(const net::Address& client,
                                                    std::string_view host,
                                                    MonotonicTime now) const {
  return used_->noted_at(client, host, now);
}

CertificateReport authority_report(const config::Intercept& intercept,
                                   const Interception& interception, WallTime now) {
  return {.listener = {},
          .file = intercept.ca_certificate,
          .names = "intercept.hosts",
          .left = interception.authority().not_after() - now,
          .life = {}};
}

}  // namespace encore::server

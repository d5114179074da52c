// TlsListeners: the TLS of each listener that speaks it, as a configuration has it. Made off the
// loops, at start and at each reload; a session holds what it was begun with. Immutable once made,
// thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "proxy/net/tls_server.h"
#include "proxy/observe/certificate_report.h"

namespace encore::server {

class TlsListeners {
 public:
  // `before`: whose keys for tickets go on, where no file says otherwise; null: those of `tickets`
  // do, or new ones where that is null, too.
  // Errors show the listener, the file and what is wrong with it.
  static Result<TlsListeners> create(const config::Config& config, const TlsListeners* before,
                                     std::shared_ptr<net::TlsTickets> tickets = {});
  // Makes the server of one listener. `tickets` are for those without a file of them. Errors show
  // the file.
  static Result<std::shared_ptr<const net::TlsServer>> make(
      const config::Listen& listen, const std::shared_ptr<net::TlsTickets>& tickets);
  // Reports of one listener's certificates; each file once.
  static std::vector<CertificateReport> reports(const config::Listen& listen,
                                                const net::TlsServer& server, WallTime now);

  // Null: the listener of that place speaks plain HTTP.
  const std::shared_ptr<const net::TlsServer>& of(std::size_t listener) const {
    static const std::shared_ptr<const net::TlsServer> kNone;
    return listener < servers_.size() ? servers_[listener] : kNone;
  }

  // Keys of those without a file of them; null: no listener speaks TLS.
  const std::shared_ptr<net::TlsTickets>& tickets() const { return tickets_; }

 private:
  std::shared_ptr<net::TlsTickets> tickets_;
  std::vector<std::shared_ptr<const net::TlsServer>> servers_;
};

// Reports of all, in the order of the config.
std::vector<CertificateReport> known_certificates(const config::Config& config,
                                                  const TlsListeners& listeners, WallTime now);
// True if less than 30 days are left, and less than a third of its life (of 6 days 2). Clients have
// to be given a new authority, so that of one the 30 days alone count.
bool is_renewal_due(const CertificateReport& certificate);
// The text "... of "a.pem" for a.example ends in 3 days", without its listener.
std::string renewal_text(const CertificateReport& certificate);

}  // namespace encore::server

// TlsListeners: the TLS of each listener that speaks it, as a configuration has it. Made off the
// loops, at start, at each reload, and when files of certificates have changed; a session holds
// what it was begun with. Immutable once made, thread-safe. Why files are taken without a reload:
// docs/decisions/0571.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "proxy/net/tls_server.h"
#include "proxy/observe/certificate_report.h"

namespace encore::server {

class TlsListeners {
 public:
  // `before`: whose keys for tickets go on, where no file says otherwise, and whose certificates
  // give way to no self-signed one; null: the keys of `tickets` do, or new ones where that is null,
  // too.
  // Errors show the listener, the file and what is wrong with it.
  static Result<TlsListeners> create(const config::Config& config, const TlsListeners* before,
                                     std::shared_ptr<net::TlsTickets> tickets = {});
  // Makes the server of one listener. `names` are those of a self-signed certificate in the place
  // of missing files; `tickets` are for those without a file of them. Errors show the file.
  struct ServerParts {
    std::vector<std::string> names;
    std::shared_ptr<net::TlsTickets> tickets;
    std::span<const std::shared_ptr<const net::TlsServer>> before = {};  // the present ones
  };
  static Result<std::shared_ptr<const net::TlsServer>> make(const config::Listen& listen,
                                                            const ServerParts& parts);
  // Reports of one listener's certificates; each file once.
  static std::vector<CertificateReport> reports(const config::Listen& listen,
                                                const net::TlsServer& server, WallTime now);
  // The same of the listener of that place, with what renew() has found. REQUIRES: it speaks TLS.
  std::vector<CertificateReport> reports(const config::Config& config, std::size_t listener,
                                         WallTime now) const;

  // Checks the files of the listeners for which `is_due` is true, and reads those that have
  // changed.
  struct Renewal;
  Renewal renew(const config::Config& config, const std::vector<bool>& is_due) const;

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
  // Why the present files of each pair of a listener cannot be used; empty: they are in use.
  std::map<std::size_t, std::vector<std::string>> faults_;
};

struct TlsListeners::Renewal {
  std::shared_ptr<const TlsListeners> listeners;  // null: these go on
  // Sentences for the log.
  std::vector<std::string> taken;   // certificates of changed files, now in use
  std::vector<std::string> faults;  // files that have become unusable, or for another reason
};

// Returns the names of a self-signed certificate for a listener: the hosts of the [[origin]]s, as
// far as they are names, of a reverse listener; "localhost" if there are none. At most 100.
std::vector<std::string> stand_in_names(const config::Config& config, const config::Listen& listen);

// Reports of all, in the order of the config.
std::vector<CertificateReport> known_certificates(const config::Config& config,
                                                  const TlsListeners& listeners, WallTime now);
// True if less than 30 days are left, and less than a third of its life (of 6 days 2). Clients have
// to be given a new authority, so that of one the 30 days alone count.
bool is_renewal_due(const CertificateReport& certificate);
// The text "... of "a.pem" for a.example ends in 3 days", without its listener.
std::string renewal_text(const CertificateReport& certificate);
// The text for a self-signed certificate in the place of missing files, without its listener.
std::string stand_in_text(const CertificateReport& certificate);

}  // namespace encore::server

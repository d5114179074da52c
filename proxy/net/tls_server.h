// TlsServer: what the TLS connections of one listener have in common: its certificates, chosen by
// the name that the client asks for, the keys of its tickets, whose certificates it asks for.
// Immutable once made, thread-safe: workers share one, and each session holds it, so that another
// one may take its place at any time.
//
// TLS 1.2 and 1.3, no early data, no renegotiation, no compression, no store of sessions: what a
// client takes up again is in its ticket.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "proxy/net/tls.h"
#include "proxy/net/tls_tickets.h"

struct evp_pkey_st;

namespace encore::net {

struct TlsIdentity;

class TlsServer : public std::enable_shared_from_this<TlsServer> {
 public:
  struct Pair {
    std::string certificate_file;  // PEM, leaf first, then the chain
    std::string key_file;          // PEM
    std::string ocsp_file = {};    // DER; empty: none is stapled
    // Names of a self-signed certificate that is shown while a file of certificate or key does not
    // exist; empty: that is an error.
    std::vector<std::string> stand_in_names = {};
  };
  enum class ClientVerify : std::uint8_t {
    kOff,
    kRequest,  // a client without one is accepted; one with an untrusted one is not
    kRequire,
  };
  struct Options {
    std::vector<Pair> pairs = {};      // at least one
    bool refuse_unknown_name = false;  // else the first pair answers
    bool only_tls13 = false;
    // Protocols above TLS, the dearest first. A client that offers others alone is refused
    // (RFC 7301 3.2). Empty: what a client offers is not looked at.
    std::vector<std::string> alpn = {"http/1.1"};
    std::string client_ca_file = {};  // PEM; with client_verify
    ClientVerify client_verify = ClientVerify::kOff;
    std::shared_ptr<TlsTickets> tickets = {};
    WallTime now{};
  };
  // Properties of a certificate.
  struct Certificate {
    std::string file;
    std::vector<std::string> names;  // lower case
    WallTime not_before{};
    WallTime not_after{};
    bool is_stand_in = false;  // self-signed here, because a file is missing
  };

  // Pairs of one name are chosen from by the kind of key that the client can use; of one kind the
  // first counts. `before`: their stand-ins go on, and none of their certificates gives way to one.
  // Errors show the file and what is wrong with it. REQUIRES: a pair, and tickets.
  static Result<std::shared_ptr<const TlsServer>> create(
      const Options& options, std::span<const std::shared_ptr<const TlsServer>> before = {});
  // One whose certificates are said with each session, all of the same key, which is shared, and
  // shown in front of `chain` (each DER).
  static Result<std::shared_ptr<const TlsServer>> create_for(const Options& options,
                                                             evp_pkey_st& key,
                                                             const std::vector<std::string>& chain);
  // Checks the files of the pairs, and reads those that have changed.
  struct Renewal {
    // Null: no pair has changed that can be used.
    std::shared_ptr<const TlsServer> server = {};
    std::vector<std::size_t> taken = {};  // places of the pairs that were read
    // For each pair why its present files cannot be used; empty: they are in use.
    std::vector<std::string> faults = {};
  };
  // The new server has this one's tickets and authorities of clients. `options`, with the same
  // pairs, is what this was made of.
  Renewal renew(const Options& options) const;
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;
  ~TlsServer();

  // One connection's state, for Stream. Null where memory is out.
  TlsSessionPointer session() const;
  // The same, which shows this certificate (DER). Null also where it is none, or another key's.
  // REQUIRES: made by create_for().
  TlsSessionPointer session_showing(std::string_view certificate) const;
  const std::vector<Certificate>& certificates() const { return certificates_; }

  // For OpenSSL's callbacks. Returns the context for a name (lower case; empty: none was given);
  // null: it is refused.
  struct Context;
  const Context* find(std::string_view name) const;
  const std::string& alpn() const { return alpn_; }
  TlsTickets& tickets() const { return *tickets_; }

 private:
  using Identities = std::vector<std::shared_ptr<const TlsIdentity>>;
  // `before`: whose authorities of clients it has; null: those of the options' file.
  static Result<std::shared_ptr<const TlsServer>> make(const Options& options,
                                                       Identities identities,
                                                       const TlsServer* before = nullptr);
  TlsServer(const Options& options, Identities identities);
  Result<void> make_contexts(const Options& options, const TlsServer* before);
  Result<std::unique_ptr<Context>> make_context(const Options& options,
                                                const std::vector<std::size_t>& members,
                                                const TlsServer* before) const;
  const Context* find_exact_or_wild(std::string_view name) const;

  Identities identities_;
  std::vector<Certificate> certificates_;
  std::shared_ptr<TlsTickets> tickets_;
  std::string alpn_;  // as the protocol has it
  bool refuse_unknown_name_ = false;
  // By the identities that they show.
  std::map<std::vector<std::size_t>, std::unique_ptr<Context>> contexts_;
  std::unordered_map<std::string, const Context*> by_name_;  // "*.example.com" too
  const Context* first_ = nullptr;
};

}  // namespace encore::net

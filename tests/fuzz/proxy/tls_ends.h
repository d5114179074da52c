// Both ends of TLS that the world has: the client's towards the proxy and the server's of an
// origin, with one certificate that is its own authority, made out of OpenSSL's random numbers.
// Each connection begins as its stream of random numbers wants: versions, names, session tickets.
// One thread.
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/proxy/random.h"

struct ssl_session_st;

namespace encore::proxyfuzz {

struct FreeSsl {
  void operator()(SSL* ssl) const noexcept;
};
using Ssl = std::unique_ptr<SSL, FreeSsl>;

class TlsEnds {
 public:
  // `random` decides on the kind of key. Ends the program where OpenSSL fails.
  explicit TlsEnds(Random random);
  ~TlsEnds();
  TlsEnds(const TlsEnds&) = delete;
  TlsEnds& operator=(const TlsEnds&) = delete;

  // Writes certificate.pem and key.pem there, before anybody reads them; or has them in memory, by
  // names that are of use in this process as long as this lives.
  void write_files(const std::string& directory);
  void keep_files_in_memory();
  // REQUIRES of both: one of these.
  const std::string& certificate_file() const { return certificate_file_; }
  // For [[listen]], as a line.
  std::string listen_line() const;

  // The protocol that a client speaks, and offers by ALPN; kOther: none of the proxy's.
  enum class Offer : std::uint8_t { kHttp1, kHttp2, kOther };
  // A connection to the proxy.
  Ssl make_client(Random& random, Offer offer);
  // One that an origin has accepted.
  Ssl make_server(Random& random);
  // Origins choose HTTP/2 by ALPN where it is offered, most of them.
  void choose_http2(Random random);

 private:
  void write(std::FILE* file, bool is_key) const;
  static int choose_protocol(SSL* ssl, const unsigned char** out, unsigned char* out_size,
                             const unsigned char* offered, unsigned offered_size, void* self);
  static int keep_session(SSL* ssl, ssl_session_st* session);

  EVP_PKEY* key_;
  X509* certificate_;
  SSL_CTX* client_;
  SSL_CTX* server_;
  Random choices_{0};                  // draws protocols
  ssl_session_st* session_ = nullptr;  // the last one that the proxy gave to a client
  std::string certificate_file_;
  std::string key_file_;
  std::vector<std::FILE*> in_memory_;
};

}  // namespace encore::proxyfuzz

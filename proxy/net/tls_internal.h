// Shared parts of the units of TLS. For these only.
#pragma once

#include <openssl/ssl.h>

#include <deque>
#include <string>
#include <unordered_map>

#include "base/mutex.h"

namespace encore::net {

// OpenSSL's oldest queued error as one line, without its codes.
std::string openssl_error();

// Creates a context with the settings that clients and servers share. Null if memory is out.
SSL_CTX* new_context(const SSL_METHOD* method);

// The sessions that a client may take up again, one a peer. Thread-safe.
class SessionStore {
 public:
  SessionStore() = default;
  SessionStore(const SessionStore&) = delete;
  SessionStore& operator=(const SessionStore&) = delete;
  ~SessionStore();
  // Takes the reference over. The peer stored longest ago goes where there are too many.
  void put(const std::string& key, SSL_SESSION* session);
  // Gives `ssl` the session of that peer, if there is one.
  void give(const std::string& key, SSL* ssl);

 private:
  static constexpr std::size_t kSessionsMax = 1024;
  Mutex mutex_;
  std::unordered_map<std::string, SSL_SESSION*> sessions_ ENCORE_GUARDED_BY(mutex_);
  std::deque<std::string> order_ ENCORE_GUARDED_BY(mutex_);
};

struct TlsShared {
  explicit TlsShared(SSL_CTX* taken) : context(taken) {}
  TlsShared(const TlsShared&) = delete;
  TlsShared& operator=(const TlsShared&) = delete;
  ~TlsShared() { SSL_CTX_free(context); }

  SSL_CTX* context;
  bool verify_peer = true;
  SessionStore sessions;
};

}  // namespace encore::net

// The floor of TLS: a server that answers every request with canned bytes through SSL_read and
// SSL_write on the descriptor, and nothing else.
//   tls_floor --port=P --bytes=1024 CERTIFICATE KEY
// One ticket a handshake, no session cache; the connection is closed behind a request of HTTP/1.0.
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/bench/canned.h"

namespace {

using encore::bench::accept_one;

SSL_CTX* make_context(const char* certificate, const char* key) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 1);
  SSL_CTX_set1_groups_list(context, "X25519:P-256");
  if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1) {
    ERR_print_errors_fp(stderr);
    std::exit(1);
  }
  return context;
}

// One client. The read event is registered once; the write event is added where bytes are left.
class Connection {
 public:
  Connection(event_base* base, int fd, SSL_CTX* context, std::string_view answer)
      : fd_(fd), ssl_(SSL_new(context)), answer_(answer) {
    SSL_set_fd(ssl_, fd);
    SSL_set_accept_state(ssl_);
    event_assign(&read_, base, fd, EV_READ | EV_PERSIST, on_ready, this);
    event_assign(&write_, base, fd, EV_WRITE, on_ready, this);
    event_add(&read_, nullptr);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

 private:
  ~Connection() {
    event_del(&read_);
    event_del(&write_);
    SSL_free(ssl_);
    close(fd_);
  }

  static void on_ready(evutil_socket_t, short, void* self) {
    auto* connection = static_cast<Connection*>(self);
    if (!connection->go_on()) delete connection;
  }

  // False: the connection has ended.
  bool go_on() {
    if (!pending_.empty()) return write_some();
    static char buffer[16384];
    const int got = SSL_read(ssl_, buffer, sizeof buffer);
    if (got <= 0) return may_go_on(got);
    head_.append(buffer, static_cast<std::size_t>(got));
    if (!head_.ends_with("\r\n\r\n")) return true;
    last_ = head_.find(" HTTP/1.0\r\n") != std::string::npos;
    head_.clear();
    pending_ = answer_;
    return write_some();
  }

  bool write_some() {
    while (!pending_.empty()) {
      const int put = SSL_write(ssl_, pending_.data(), static_cast<int>(pending_.size()));
      if (put <= 0) return may_go_on(put);
      pending_.remove_prefix(static_cast<std::size_t>(put));
    }
    if (last_) SSL_shutdown(ssl_);
    return !last_;
  }

  bool may_go_on(int result) {
    const int error = SSL_get_error(ssl_, result);
    ERR_clear_error();
    if (error == SSL_ERROR_WANT_WRITE) event_add(&write_, nullptr);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  }

  int fd_;
  SSL* ssl_;
  std::string_view answer_;
  std::string_view pending_;  // the rest to write
  std::string head_;          // begin of a head whose end has not come
  bool last_ = false;
  event read_{};
  event write_{};
};

struct Server {
  event_base* base;
  SSL_CTX* context;
  std::string answer;
  event accept{};
};

void on_acceptable(evutil_socket_t listener, short, void* argument) {
  auto* server = static_cast<Server*>(argument);
  for (int fd; (fd = accept_one(listener)) >= 0;) {
    new Connection(server->base, fd, server->context, server->answer);
  }
}

}  // namespace

int main(int argc, char** argv) {
  using encore::bench::number_argument;
  if (argc < 3) {
    std::fprintf(stderr, "usage: tls_floor --port=P --bytes=N CERTIFICATE KEY\n");
    return 2;
  }
  Server server{
      event_base_new(), make_context(argv[argc - 2], argv[argc - 1]),
      encore::bench::canned_response(number_argument(argc, argv, "bytes", 1024), "Age: 1\r\n", 0)};
  const auto port = static_cast<std::uint16_t>(number_argument(argc, argv, "port", 0));
  event_assign(&server.accept, server.base, encore::bench::listen_on(port), EV_READ | EV_PERSIST,
               on_acceptable, &server);
  event_add(&server.accept, nullptr);
  encore::bench::run_until_signal(server.base);
  return 0;
}

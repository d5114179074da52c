// The floor of HTTP/2: a server on nghttp2 and libevent that answers every request with the same
// canned body, in one write a read.
//   h2_floor --port=P --bytes=1024                     HTTP/2 with prior knowledge
//   h2_floor --port=P --bytes=1024 CERTIFICATE KEY     by TLS and ALPN
#include <nghttp2/nghttp2.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/bench/canned.h"

namespace {

using encore::bench::accept_one;
using encore::bench::number_argument;

nghttp2_nv field(std::string_view name, std::string_view value) {
  return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(),
          value.size(), NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

struct Server {
  event_base* base;
  SSL_CTX* context;  // null: no TLS
  std::string body;
  std::string length;
  event accept{};
};

int choose_h2(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered,
              unsigned int offered_size, void*) {
  static constexpr unsigned char kH2[] = {2, 'h', '2'};
  return SSL_select_next_proto(const_cast<unsigned char**>(out), size, kH2, sizeof kH2, offered,
                               offered_size) == OPENSSL_NPN_NEGOTIATED
             ? SSL_TLSEXT_ERR_OK
             : SSL_TLSEXT_ERR_ALERT_FATAL;
}

SSL_CTX* make_context(const char* certificate, const char* key) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(context, choose_h2, nullptr);
  if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1) {
    ERR_print_errors_fp(stderr);
    std::exit(1);
  }
  return context;
}

// One client. Deletes itself when the connection ends.
class Connection {
 public:
  Connection(Server& server, int fd)
      : server_(server),
        fd_(fd),
        ssl_(server.context != nullptr ? SSL_new(server.context) : nullptr) {
    if (ssl_ != nullptr) {
      SSL_set_fd(ssl_, fd);
      SSL_set_accept_state(ssl_);
    }
    static nghttp2_session_callbacks* const callbacks = make_callbacks();
    nghttp2_session_server_new(&session_, callbacks, this);
    const nghttp2_settings_entry streams = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &streams, 1);
    event_assign(&read_, server.base, fd, EV_READ | EV_PERSIST, on_readable, this);
    event_assign(&write_, server.base, fd, EV_WRITE, on_writable, this);
    event_add(&read_, nullptr);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

 private:
  ~Connection() {
    event_del(&read_);
    event_del(&write_);
    nghttp2_session_del(session_);
    if (ssl_ != nullptr) SSL_free(ssl_);
    close(fd_);
  }

  static nghttp2_session_callbacks* make_callbacks() {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    return callbacks;
  }

  static void on_readable(evutil_socket_t, short, void* self) {
    auto* connection = static_cast<Connection*>(self);
    if (!connection->read_some()) delete connection;
  }
  static void on_writable(evutil_socket_t, short, void* self) {
    auto* connection = static_cast<Connection*>(self);
    if (!connection->write_some()) delete connection;
  }

  // False, here and below: the connection has ended.
  bool read_some() {
    static std::array<std::uint8_t, 16384> buffer;
    do {
      const int got = ssl_ != nullptr
                          ? SSL_read(ssl_, buffer.data(), static_cast<int>(buffer.size()))
                          : static_cast<int>(read(fd_, buffer.data(), buffer.size()));
      if (got <= 0) {
        if (!may_go_on(got)) return false;
        break;
      }
      if (nghttp2_session_mem_recv(session_, buffer.data(), static_cast<std::size_t>(got)) < 0) {
        return false;
      }
    } while (ssl_ != nullptr && SSL_pending(ssl_) > 0);
    return write_some();
  }

  bool write_some() {
    if (nghttp2_session_send(session_) != 0) return false;
    while (used_ < pending_.size()) {
      const std::string_view rest = std::string_view(pending_).substr(used_);
      const int put = ssl_ != nullptr ? SSL_write(ssl_, rest.data(), static_cast<int>(rest.size()))
                                      : static_cast<int>(write(fd_, rest.data(), rest.size()));
      if (put <= 0) return may_go_on(put);
      used_ += static_cast<std::size_t>(put);
    }
    pending_.clear();
    used_ = 0;
    return nghttp2_session_want_read(session_) != 0 || nghttp2_session_want_write(session_) != 0;
  }

  bool may_go_on(int result) {
    const bool writes = used_ < pending_.size();
    if (ssl_ == nullptr) {
      if (result == 0 || (errno != EAGAIN && errno != EINTR)) return false;
    } else {
      const int error = SSL_get_error(ssl_, result);
      ERR_clear_error();
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return false;
    }
    if (writes) event_add(&write_, nullptr);
    return true;
  }

  static ssize_t on_send(nghttp2_session*, const std::uint8_t* bytes, std::size_t size, int,
                         void* self) {
    static_cast<Connection*>(self)->pending_.append(reinterpret_cast<const char*>(bytes), size);
    return static_cast<ssize_t>(size);
  }

  static int on_send_data(nghttp2_session*, nghttp2_frame*, const std::uint8_t* header,
                          std::size_t size, nghttp2_data_source* source, void* self) {
    auto* connection = static_cast<Connection*>(self);
    auto* left = static_cast<std::size_t*>(source->ptr);
    const std::string& body = connection->server_.body;
    connection->pending_.append(reinterpret_cast<const char*>(header), 9);
    connection->pending_.append(body, body.size() - *left, size);
    *left -= size;
    if (*left == 0) delete left;
    return 0;
  }

  static ssize_t on_read(nghttp2_session*, std::int32_t, std::uint8_t*, std::size_t room,
                         std::uint32_t* flags, nghttp2_data_source* source, void*) {
    const std::size_t left = *static_cast<std::size_t*>(source->ptr);
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (left <= room) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(std::min(left, room));
  }

  static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* self) {
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    const Server& server = static_cast<Connection*>(self)->server_;
    const std::array<nghttp2_nv, 5> fields = {
        field(":status", "200"), field("date", "Sat, 28 Nov 2026 05:00:00 GMT"),
        field("content-type", "text/plain"), field("content-length", server.length),
        field("age", "1")};
    const nghttp2_data_provider provider = {{.ptr = new std::size_t(server.body.size())}, on_read};
    return nghttp2_submit_response(session, frame->hd.stream_id, fields.data(), fields.size(),
                                   &provider);
  }

  Server& server_;
  int fd_;
  SSL* ssl_;
  nghttp2_session* session_ = nullptr;
  std::string pending_;   // bytes that are still to be written,
  std::size_t used_ = 0;  // except these first ones
  event read_{};
  event write_{};
};

void on_acceptable(evutil_socket_t listener, short, void* argument) {
  auto* server = static_cast<Server*>(argument);
  for (int fd; (fd = accept_one(listener)) >= 0;) new Connection(*server, fd);
}

}  // namespace

int main(int argc, char** argv) {
  const bool by_tls = argc > 2 && !std::string_view(argv[argc - 2]).starts_with("--");
  const std::size_t bytes = number_argument(argc, argv, "bytes", 1024);
  Server server{event_base_new(), by_tls ? make_context(argv[argc - 2], argv[argc - 1]) : nullptr,
                std::string(bytes, 'a'), std::to_string(bytes)};
  const auto port = static_cast<std::uint16_t>(number_argument(argc, argv, "port", 0));
  event_assign(&server.accept, server.base, encore::bench::listen_on(port), EV_READ | EV_PERSIST,
               on_acceptable, &server);
  event_add(&server.accept, nullptr);
  encore::bench::run_until_signal(server.base);
  return 0;
}
